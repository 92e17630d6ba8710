#include "cli/print/link_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/json.hpp"

namespace hcclsim::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// One link of three that is busy for 4 of 10 ms, in which it carries 20 MB at 10 GB/s.
study::LinkReport one_link() {
  study::LinkReport report{.time = 10e-3, .intervals = 1, .links_used = 3, .kinds = {}, .links = {}};
  report.links.push_back({.name = "hccs-0,1_UP",
                          .kind = "HCCS",
                          .from = "NPU 0",
                          .to = "3 NPUs of server 1",
                          .capacity = 10e9,
                          .bytes = 20'000'000,
                          .busy = 4e-3,
                          .utilisation = 0.2,
                          .utilisation_while_busy = 0.5,
                          .most_transfers = 2,
                          .shares = {{"allreduce1", 0, 15'000'000}, {"allreduce2", 0, 5'000'000}},
                          .loads = {0.2}});
  return report;
}

TEST(LinkTable, TellsWhatALinkCarriedAndForWhom) {
  const std::string text = link_report_text(one_link(), "Busiest links of the step");
  EXPECT_THAT(text, HasSubstr("Busiest links of the step, 1 of 3 in use, within 10.000 ms:\n"));
  EXPECT_THAT(text, HasSubstr("hccs-0,1_UP  HCCS  NPU 0  3 NPUs of server 1  20.000  10.00"));
  EXPECT_THAT(text, testing::ContainsRegex("4\\.000 +20\\.0 +50\\.0 +2  allreduce1 75\\.0 %, allreduce2 25\\.0 %\n"));
  EXPECT_THAT(text, Not(HasSubstr("of stage")));
}

TEST(LinkTable, TellsStagesApartWhereThereAreSeveral) {
  study::LinkReport report = one_link();
  report.links.front().shares = {{"send", 1, 15'000'000}, {"send", 0, 5'000'000}};
  EXPECT_THAT(link_report_text(report, "Links"), HasSubstr("send of stage 1 75.0 %, send of stage 0 25.0 %"));
}

TEST(LinkTable, AddsUpManySmallShares) {
  study::LinkReport report = one_link();
  report.links.front().shares.clear();
  for (const char* const name : {"a", "b", "c", "d", "e"}) report.links.front().shares.push_back({name, 0, 4'000'000});
  EXPECT_THAT(link_report_text(report, "Links"), HasSubstr("a 20.0 %, b 20.0 %, c 20.0 %, 2 others 40.0 %"));
}

TEST(LinkTable, OfNoLinksHasTitlesOnly) {
  const study::LinkReport none{.time = 1e-3, .kinds = {}, .links = {}};
  EXPECT_THAT(link_report_text(none, "Links"), HasSubstr("Links, 0 of 0 in use, within 1.000 ms:\n"));
}

TEST(LinkJson, HasStagesOfTrainingStepsOnly) {
  study::LinkReport report = one_link();
  Json json = Json::object();
  add_links_json(json, report);
  EXPECT_EQ(json["links_used"], 3);
  const Json& link = json["links"][0];
  EXPECT_DOUBLE_EQ(link["utilisation_while_busy"].get<double>(), 0.5);
  EXPECT_EQ(link["shares"][1]["stage"], 0);
  EXPECT_DOUBLE_EQ(link["shares"][1]["share"].get<double>(), 0.25);
  for (study::LinkReport::Share& share : report.links.front().shares) share.stage.reset();
  EXPECT_FALSE(links_json(report)[0]["shares"][0].contains("stage"));
}

TEST(LinkCsv, HasARowForEachShare) {
  EXPECT_THAT(link_csv_titles(), testing::StartsWith("link,kind,from,to,"));
  EXPECT_EQ(
      link_csv_rows(one_link(), "a,"),
      "a,\"hccs-0,1_UP\",HCCS,NPU 0,3 NPUs of server 1,10000000000,20000000,0.004,0.2,0.5,2,allreduce1,0,15000000\n"
      "a,\"hccs-0,1_UP\",HCCS,NPU 0,3 NPUs of server 1,10000000000,20000000,0.004,0.2,0.5,2,allreduce2,0,5000000\n");
}

}  // namespace
}  // namespace hcclsim::cli
