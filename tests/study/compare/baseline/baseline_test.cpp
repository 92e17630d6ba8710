#include "study/compare/baseline/baseline.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void erase(Json& object, std::string_view key) {
  Json rest = Json::object();
  for (const auto& [name, value] : object.items()) {
    if (name != key) rest.append(name, value);
  }
  object = rest;
}

void erase_at(Json& list, std::size_t index) {
  Json rest = Json::array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i != index) rest.push_back(list[i]);
  }
  list = rest;
}

/// Two segments of three gradients on four ranks, of which the last is slower.
Json run() {
  return Json::parse(R"({
    "format_version": 2, "model": "tiny", "platform": "lab.xml", "npus": 4, "batch": 32, "rank": 1, "iterations": 3,
    "amp": "O2", "framework": "tf", "hcom_parallel": false, "launch": "graph", "network": "simgrid",
    "segment_log": "[0,1] [2,2]",
    "segments": [
      {"first": 0, "last": 1, "bytes": 8, "ready_s": 1.0, "start_s": 2.0, "end_s": 3.0, "algorithm": "ring",
       "algbw_Bps": 8.0, "busbw_Bps": 12.0, "hidden": 0.0, "limited_by": "hccs link", "parameters": [[1, 2]]},
      {"first": 2, "last": 2, "bytes": 4, "ready_s": 2.0, "start_s": 3.0, "end_s": 4.0, "algorithm": "ring",
       "algbw_Bps": 4.0, "busbw_Bps": 6.0, "hidden": 0.0, "limited_by": "alpha", "parameters": [[0, 0]]}],
    "trace": {"fp_start_s": 0.0, "bp_end_s": 2.0, "iteration_end_s": 5.0,
              "allreduce": [{"start_s": 2.0, "end_s": 3.0}, {"start_s": 3.0, "end_s": 4.0}]},
    "gradients": [{"index": 0, "name": "c", "bytes": 4, "ready_s": 0.5}, {"index": 1, "name": "b", "bytes": 4, "ready_s": 1.0},
                  {"index": 2, "name": "a", "bytes": 4, "ready_s": 2.0}],
    "step_time_s": 5.0, "images_per_s": 25.6, "compute_s": 3.0, "exposed_communication_s": 2.0, "hbm_peak_bytes": 100,
    "ranks": [{"first": 0, "last": 2, "step_time_s": 5.0}, {"first": 3, "last": 3, "step_time_s": 6.0}],
    "advice": null, "notes": []})");
}

/// "place: figure before -> after", one per difference.
std::vector<std::string> differences(const Json& before, const Json& after, double tolerance = 0) {
  std::vector<std::string> lines;
  for (const ComparedPart& part : compare_runs(before, after, tolerance).parts) {
    for (const Difference& d : part.differences) {
      lines.push_back(fmt::format("{}: {} {} -> {}", d.place, d.figure, d.before.dump(), d.after.dump()));
    }
  }
  return lines;
}

TEST(Baseline, EqualRunsHaveNoDifferences) {
  const BaselineComparison comparison = compare_runs(run(), run(), 0);
  EXPECT_EQ(comparison.differences(), 0U);
  std::vector<std::string> parts;
  for (const ComparedPart& part : comparison.parts) parts.push_back(part.name);
  EXPECT_THAT(
      parts,
      ElementsAre("configuration", "step", "trace point fp_start", "trace point bp_end", "trace point allreduce1_start",
                  "trace point allreduce1_end", "trace point allreduce2_start", "trace point allreduce2_end",
                  "trace point iteration_end", "segment 1 [0,1]", "segment 2 [2,2]", "gradients", "ranks"));
  // 17 of the configuration, 5 of the step, 7 trace points, 2 · 9 of segments, 3 gradients, the number of ranks and 4
  // ranks.
  EXPECT_EQ(comparison.figures(), 17U + 5 + 7 + 18 + 3 + (1 + 4));
}

TEST(Baseline, DifferencesNameSegmentRankAndFigure) {
  Json after = run();
  after["segments"][1]["end_s"] = 4.5;
  after["segments"][1]["algorithm"] = "mesh";
  after["gradients"][2]["ready_s"] = 2.5;
  after["trace"]["allreduce"][1]["end_s"] = 4.5;
  after["ranks"] =
      Json::parse(R"([{"first": 0, "last": 1, "step_time_s": 5.0}, {"first": 2, "last": 3, "step_time_s": 6.0}])");
  EXPECT_THAT(differences(run(), after),
              ElementsAre("trace point allreduce2_end on rank 1: end_s 4.0 -> 4.5",
                          "segment 2 [2,2] on rank 1: end_s 4.0 -> 4.5",
                          R"(segment 2 [2,2] on rank 1: algorithm "ring" -> "mesh")",
                          "gradient 2 a on rank 1: ready_s 2.0 -> 2.5", "rank 2: step_time_s 5.0 -> 6.0"));
  const BaselineComparison comparison = compare_runs(run(), after, 0);
  EXPECT_DOUBLE_EQ(*comparison.parts[7].differences.front().relative, 0.125);
}

TEST(Baseline, FiguresMayDifferByTheToleranceNamesMayNot) {
  Json after = run();
  after["step_time_s"] = 5.1;
  EXPECT_THAT(differences(run(), after, 0.02), IsEmpty());
  EXPECT_THAT(differences(run(), after, 0.0199), ElementsAre("step on rank 1: step_time_s 5.0 -> 5.1"));
  after = run();
  after["segments"][0]["limited_by"] = "alpha";
  after["batch"] = 33;
  EXPECT_EQ(differences(run(), after, 1).size(), 2U);
  // 0 has no relative neighbourhood.
  after = run();
  after["trace"]["fp_start_s"] = 1e-30;
  EXPECT_THAT(differences(run(), after, 1), ElementsAre("trace point fp_start on rank 1: fp_start_s 0.0 -> 1e-30"));
}

TEST(Baseline, UnlikeConfigurationsComeFirstAndLimitWhatIsCompared) {
  Json after = run();
  after["model"] = "small";
  erase_at(after["gradients"], 2);
  after["segment_log"] = "[0,1]";
  erase_at(after["segments"], 1);
  after["npus"] = 2;
  after["step_time_s"] = 4.0;
  EXPECT_THAT(differences(run(), after),
              ElementsAre(R"(configuration: model "tiny" -> "small")", "configuration: npus 4 -> 2",
                          R"(configuration: segment_log "[0,1] [2,2]" -> "[0,1]")", "configuration: gradients 3 -> 2",
                          "step on rank 1: step_time_s 5.0 -> 4.0"));
  after = run();
  after["gradients"][1]["bytes"] = 8;
  after["gradients"][2]["ready_s"] = 7;
  EXPECT_THAT(differences(run(), after), ElementsAre("configuration: gradients[1].bytes 4 -> 8"));
  // Folders do not count.
  Json before = run();
  before["model"] = "old/tiny";
  EXPECT_THAT(differences(before, run()), IsEmpty());
}

TEST(Baseline, WhatAnOlderHcclsimDidNotWriteIsNotCompared) {
  Json before = run();
  erase(before, "ranks");
  erase(before, "rank");
  erase(before, "hcom_parallel");
  erase(before["segments"][0], "limited_by");
  EXPECT_THAT(differences(before, run()), IsEmpty());
  // What a baseline has must be there.
  Json after = run();
  erase_at(after["segments"], 1);
  EXPECT_THAT(differences(run(), after), ElementsAre("segments: number 2 -> 1"));
  before = run();
  before["step_time_s"] = "fast";
  EXPECT_THAT(differences(before, run()), ElementsAre(R"(step on rank 1: step_time_s "fast" -> 5.0)"));
}

TEST(Baseline, WhatOnlyTheBaselineHasIsMissing) {
  Json before = run();
  before["settings"] = {{"optimizer", "adam"}, {"jitter", "0.1"}};
  before["gradient_checks"] = {{"flag_s", 1.0}, {"more", {{"inner_s", 2.0}}}};
  Json after = run();
  after["settings"] = {{"optimizer", "adam"}, {"levels", "2:ring"}};
  after["gradient_checks"] = {{"more", Json::object()}};
  erase_at(after["trace"]["allreduce"], 1);
  erase(after["segments"][0], "ready_s");
  EXPECT_THAT(differences(before, after),
              ElementsAre("configuration: jitter \"0.1\" -> null", "configuration: levels null -> \"2:ring\"",
                          "trace points of allreduces: number 2 -> 1", "segment 1 [0,1] on rank 1: ready_s 1.0 -> null",
                          "gradient checks on rank 1: flag_s 1.0 -> null",
                          "gradient checks on rank 1: more.inner_s 2.0 -> null"));
}

TEST(Baseline, RealNumbersAreComparedStepByStep) {
  Json before = run();
  before["numerics"] = Json::parse(R"({"iterations": [{"iteration": 1, "loss": 2.5, "overflow": false},
                                                       {"iteration": 2, "loss": null, "overflow": true}],
                                       "replica_difference": {"bits": 0, "largest": 0.0}, "gradient_error": null})");
  EXPECT_THAT(differences(before, before), IsEmpty());
  Json after = before;
  after["numerics"]["iterations"][0]["loss"] = 2.25;
  after["numerics"]["iterations"][1]["loss"] = 2.0;
  after["numerics"]["replica_difference"]["bits"] = 3;
  EXPECT_THAT(differences(before, after),
              ElementsAre("training step 1 on rank 1: loss 2.5 -> 2.25", "training step 2 on rank 1: loss null -> 2.0",
                          "replica_difference on rank 1: bits 0 -> 3"));
  EXPECT_THAT(differences(before, run()), ElementsAre("configuration: numerics true -> false"));
}

std::string message_of(const std::string& text) {
  const std::string file = testing::TempDir() + "baseline_test.json";
  std::ofstream(file) << text;
  try {
    static_cast<void>(read_baseline(file));
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
}

TEST(Baseline, FilesThatAreNone) {
  EXPECT_EQ(message_of(run().dump()), "");
  EXPECT_THAT(message_of(""), HasSubstr(":1:1: not JSON"));
  EXPECT_THAT(message_of(R"({"format_version": 2)"), HasSubstr("store a baseline with `hcclsim run --format json"));
  for (const char* text :
       {"[]", "1", "null", R"({"rows": []})", R"({"format_version": "2", "segments": [], "step_time_s": 1})"}) {
    EXPECT_THAT(message_of(text), HasSubstr("this is not what a run prints")) << text;
  }
  for (const int version : {1, 3}) {
    Json other = run();
    other["format_version"] = version;
    EXPECT_THAT(message_of(other.dump()), HasSubstr(fmt::format("it has format_version {}, and 2 is read", version)));
  }
  EXPECT_THROW(static_cast<void>(read_baseline("/no/such/file")), Error);
}

}  // namespace
}  // namespace hcclsim::study
