#include "cli/html/pages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/json.hpp"
#include "cli/html/link_data.hpp"
#include "cli/html/memory_data.hpp"
#include "cli/html/timeline_data.hpp"
#include "tests/cli/sample_run.hpp"

namespace hcclsim::cli {
namespace {

using testing::ElementsAre;

RunOptions options_of_rank(Rank rank) {
  RunOptions options;
  options.spec.simulation.rank = rank;
  return options;
}

TEST(RunPage, ShowsAllRanksOfAFewAndSomeOfMany) {
  EXPECT_THAT(ranks_of_page(options_of_rank(0), 1), ElementsAre(0));
  EXPECT_THAT(ranks_of_page(options_of_rank(2), 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ranks_of_page(options_of_rank(0), 8), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(ranks_of_page(options_of_rank(0), 4096), ElementsAre(0, 585, 1170, 1755, 2340, 2925, 3510, 4095));
  EXPECT_THAT(ranks_of_page(options_of_rank(7), 4096), ElementsAre(0, 7, 585, 1170, 1755, 2340, 2925, 3510));
}

TEST(RunPage, ShowsTheRanksThatAreAskedForButNotTooMany) {
  RunOptions options = options_of_rank(0);
  options.timeline.trace_ranks = {3, 5};
  EXPECT_THAT(ranks_of_page(options, 8), ElementsAre(3, 5));
  options.timeline.trace_ranks.clear();
  for (Rank rank = 0; rank < 100; ++rank) options.timeline.trace_ranks.push_back(rank);
  EXPECT_EQ(ranks_of_page(options, 4096).size(), 32U);
  options.timeline.trace_ranks.clear();
  options.timeline.trace_all_ranks = true;
  EXPECT_EQ(ranks_of_page(options, 4096).size(), 8U);
}

const Json& named(const Json& list, const std::string& name) {
  const auto* const found =
      std::find_if(list.begin(), list.end(), [&](const Json& one) { return one["name"] == name; });
  if (found == list.end()) throw std::out_of_range(name);
  return *found;
}

TEST(TimelineData, HasTheLastIterationInNanosecondsSinceItsBegin) {
  const Json data = timeline_data(sample_run(), {0});
  EXPECT_EQ(data["lanes"].size(), 3U);
  const Json& compute = named(data["lanes"], "Compute");
  EXPECT_EQ(compute["start"], (Json{0, 2'000'000, 4'000'000, 9'000'000}));
  EXPECT_EQ(compute["duration"], (Json{2'000'000, 2'000'000, 2'000'000, 1'000'000}));
  std::vector<std::string> kinds;
  for (const Json& kind : compute["kind"]) kinds.push_back(data["kinds"][kind.get<std::size_t>()].text());
  EXPECT_THAT(kinds, ElementsAre("forward", "backward", "backward", "update"));
  EXPECT_EQ(data["names"][compute["label"].back().get<std::size_t>()], "momentum");
  EXPECT_EQ(named(data["lanes"], "Communication")["bytes"], (Json{10'000'000, 10'000'000}));
  const Json& plane = named(data["lanes"], "Plane 2");
  EXPECT_EQ(plane["tasks"], true);
  EXPECT_EQ(plane["label"], Json::array({1}));  // the peer
  EXPECT_EQ(data["points"][1], (Json{"bp_start", 2'000'000}));
  EXPECT_EQ(data["points"].back(), (Json{"iteration_end", 10'000'000}));
  EXPECT_EQ(data["tasks_left_out"], 0);
}

TEST(TimelineData, LeavesOutTasksThatAreTooManyForAPage) {
  RunReport report = sample_run();
  for (int i = 0; i < 60'000; ++i) {
    report.step.trace.add(
        {.stream = 1, .kind = sim::SpanKind::copy, .start = 0.016, .end = 0.017, .id = {.iteration = 1}});
  }
  const Json data = timeline_data(report, {0});
  EXPECT_EQ(data["lanes"].size(), 2U);
  EXPECT_EQ(data["tasks_left_out"], 1);
}

TEST(MemoryData, FollowsTheActivationsFromKernelToKernel) {
  models::Program program = sample_program();
  program.tensors = {{700'000'000, 0, 2}, {300'000'000, 1, 2}};
  const Json data = memory_data(sample_run(std::move(program)));
  EXPECT_EQ(data["date"].size(), 3U);  // equal neighbours are one step
  EXPECT_EQ(data["activations"], (Json{700'000'000, 1'000'000'000, 0}));
  EXPECT_DOUBLE_EQ(data["date"][1].get<double>(), 2e-3);
  EXPECT_DOUBLE_EQ(data["date"][2].get<double>(), 6e-3);
  Bytes fixed = 0;
  for (const auto& [purpose, bytes] : data["fixed"].items()) fixed += bytes.get<Bytes>();
  EXPECT_EQ(fixed + 1'000'000'000, data["peak"].get<Bytes>());
}

TEST(MemoryData, KnowsNothingOfTheActivationsOfAProfile) {
  const Json data = memory_data(sample_run());
  EXPECT_TRUE(data["date"].empty());
  EXPECT_TRUE(data["activations"].empty());
}

TEST(LinkData, HasLoadsOfKindsAndOfLinksToFourDigits) {
  study::LinkReport report{.time = 8e-3, .intervals = 2, .links_used = 2, .kinds = {}, .links = {}};
  report.kinds.push_back({.kind = "HCCS",
                          .links = 2,
                          .bytes = 35'000'000,
                          .busiest = "h1",
                          .capacity = 10e9,
                          .utilisation = 0.5,
                          .most_loads = {1, 0.5},
                          .mean_loads = {0.75, 0.250004}});
  report.links.push_back({.name = "h1",
                          .kind = "HCCS",
                          .from = "NPU 0",
                          .to = "NPU 1",
                          .capacity = 10e9,
                          .bytes = 20'000'000,
                          .busy = 4e-3,
                          .utilisation = 0.5,
                          .utilisation_while_busy = 1,
                          .most_transfers = 1,
                          .shares = {{"allreduce1", 0, 15'000'000}, {"allreduce2", 0, 5'000'000}},
                          .loads = {1, 1e-9}});
  EXPECT_EQ(link_data(report), Json::parse(R"({
    "interval_s": 0.004, "links_used": 2, "links_without_host_copies": false,
    "kinds": [{"kind": "HCCS", "links": 2, "bytes": 35000000, "busiest_link": "h1", "capacity_Bps": 1e10,
               "utilisation": 0.5, "busiest": [1.0, 0.5], "mean": [0.75, 0.25]}],
    "links": [{"name": "h1", "kind": "HCCS", "from": "NPU 0", "to": "NPU 1", "shared": true, "capacity_Bps": 1e10,
               "bytes": 20000000, "busy_s": 0.004, "utilisation": 0.5, "utilisation_while_busy": 1.0,
               "most_transfers": 1,
               "shares": [{"purpose": "allreduce1", "bytes": 15000000, "share": 0.75, "stage": 0},
                          {"purpose": "allreduce2", "bytes": 5000000, "share": 0.25, "stage": 0}],
               "load": [1.0, 0]}]})"));
}

}  // namespace
}  // namespace hcclsim::cli
