#include "cli/tuner.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "cli/loaded_run.hpp"
#include "cli/platform_path.hpp"
#include "sim/cluster.hpp"
#include "study/ready_times.hpp"

namespace hcclsim::cli {
namespace {

using nlohmann::json;

struct RoundTrip {
  std::string platform;
  std::string model = "resnet18";
  DataType type = DataType::fp32;
  hccl::LaunchMode launch = hccl::LaunchMode::graph;
};

TuneOptions options_of(const RoundTrip& trip) {
  TuneOptions options;
  options.run.model = trip.model;
  options.run.communication_type = trip.type;
  options.run.launch = trip.launch;
  options.run.hcom_parallel = true;
  options.cost = study::CostModel::simulated;
  options.compare = study::parse_strategies("optimal");
  return options;
}

/// End of the last allreduce and step time of a run.
json simulated(const RunOptions& options, const std::string& platform) {
  return json::parse(run_in_child([&] {
    sim::Cluster cluster(platform);
    LoadedRun run(options, cluster);
    const auto result = simulate_training(run.cluster, run.workload, run.soc, run.costs, run.training);
    return json{{"finish", result.segments.back().end}, {"step", result.step_time}}.dump();
  }));
}

class TunerGivenBackToRun : public testing::TestWithParam<RoundTrip> {};

TEST_P(TunerGivenBackToRun, GivesThePredictedTime) {
  const std::string platform = find_platform(GetParam().platform);
  const TuneOptions options = options_of(GetParam());
  const json best = json::parse(run_in_child([&] { return tune_json(tune(options, platform)); }))["best"];
  ASSERT_GT(best["segments"], 1);

  RunOptions by_idx = options.run;
  by_idx.split_by_idx = best["by_idx"].get<std::vector<std::uint32_t>>();
  RunOptions by_size = options.run;
  by_size.split_by_size = best["by_size"].get<std::vector<double>>();
  for (const RunOptions& run : {by_idx, by_size}) {
    const json result = simulated(run, platform);
    const auto predicted = best["finish_s"].get<double>();
    EXPECT_NEAR(result["finish"].get<double>(), predicted, 1e-9 * predicted);
    EXPECT_EQ(result["finish"], best["simulated_finish_s"]);
    EXPECT_EQ(result["step"], best["simulated_step_s"]);
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, TunerGivenBackToRun,
                         testing::Values(RoundTrip{"atlas800-9000"}, RoundTrip{"atlas800-9000", "lenet"},
                                         RoundTrip{"atlas800-9000-shared-pcie"}, RoundTrip{"atlas800-9000-x4"},
                                         RoundTrip{"atlas800t-a2", "vgg16"},
                                         RoundTrip{"atlas800t-a2-x2", "resnet18", DataType::bf16},
                                         RoundTrip{"atlas800t-a2-x2", "resnet18", DataType::fp32, hccl::LaunchMode::op},
                                         RoundTrip{"atlas900-a3"}, RoundTrip{"atlas900-a3-superpod"}));

TEST(Tuner, ReadyTimesUnderJitterAreThoseOfTheRun) {
  // Without overlap the kernels are numbered alike in plan and draw, and the first iteration begins on all NPUs at
  // once.
  RunOptions options;
  options.model = "lenet";
  options.npus = 1;
  options.iterations = 1;
  options.skew.jitter = 0.1;
  const std::string platform = find_platform("atlas800-9000");
  const json both = json::parse(run_in_child([&] {
    sim::Cluster cluster(platform);
    LoadedRun run(options, cluster);
    const std::vector<Seconds> drawn = study::jittered_ready(run.workload, run.training.skew, 1, 0);
    const auto result = simulate_training(run.cluster, run.workload, run.soc, run.costs, run.training);
    return json{{"drawn", drawn}, {"simulated", result.gradient_ready}}.dump();
  }));
  ASSERT_EQ(both["drawn"].size(), 10U);
  for (std::size_t i = 0; i < both["drawn"].size(); ++i) {
    const auto date = both["simulated"][i].get<double>();
    EXPECT_NEAR(both["drawn"][i].get<double>(), date, 1e-12 * date);
  }
}

TEST(Tuner, TheNominalBandwidthIsPartOfTheChosenInterval) {
  TuneOptions options = options_of({"atlas800-9000"});
  options.cost = study::CostModel::affine;
  options.bandwidth_range = {.low = 0.25, .high = 4};
  options.run.skew.jitter = 0.02;
  const std::string platform = find_platform("atlas800-9000");
  const json report = json::parse(run_in_child([&] { return tune_json(tune(options, platform)); }));
  const json& range = report["bandwidth_range"];
  EXPECT_EQ(range["intervals"].front()["from"], 0.25);
  EXPECT_EQ(range["intervals"].back()["to"], 4.0);
  ASSERT_GT(range["intervals"].size(), 1U);
  bool found = false;
  for (const json& interval : range["intervals"]) {
    found =
        found || (interval["from"] <= 1.0 && interval["to"] >= 1.0 && interval["by_idx"] == report["best"]["by_idx"]);
  }
  EXPECT_TRUE(found) << range;
  EXPECT_GT(range["at_lowest"]["regret_s"], 0);
  EXPECT_EQ(range["at_lowest"]["best_by_idx"].size(), range["intervals"].front()["by_idx"].size());
  EXPECT_LE(report["jitter"]["optimal"], report["jitter"]["draws"]);
}

TEST(Tuner, BandwidthRangesOfOptions) {
  EXPECT_EQ(parse_bandwidth_range("roce").kind, sim::LinkKind::roce);
  EXPECT_EQ(parse_bandwidth_range("0.5:2").low, 0.5);
  EXPECT_EQ(parse_bandwidth_range("0.5:2").high, 2);
  for (const char* text :
       {"", "2", "2:1", "1:1", "0:2", "-1:2", "0.5:", ":2", "1:1e9", "0.5:2x", "nan:2", "ethernet"}) {
    EXPECT_THROW(static_cast<void>(parse_bandwidth_range(text)), Error) << text;
  }
}

}  // namespace
}  // namespace hcclsim::cli
