#include "cli/tuner.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/experiment.hpp"
#include "cli/options/platform_path.hpp"
#include "sim/cluster.hpp"
#include "study/ready_times.hpp"
#include "tests/support/case_name.hpp"

namespace hcclsim::cli {
namespace {

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

/// End of the last allreduce and step time of a run; of its gradients the parameters.
Json simulated(const RunOptions& options, const std::string& platform) {
  return Json::parse(run_in_child([&] {
    sim::Cluster cluster(platform);
    Experiment run(options, cluster);
    const auto result = simulate_training(run.cluster, run.workload, run.soc, run.costs, run.training);
    std::vector<std::uint32_t> parameters;
    for (const device::TimedGradient& gradient : run.workload.gradients) parameters.push_back(gradient.parameter);
    return Json{{"finish", result.segments.back().end}, {"step", result.step_time}, {"parameters", parameters}}.dump();
  }));
}

/// Gradients in production order, by the group of parameters 0 … i, i+1 … j, … that MindSpore sends together; the
/// groups of the last parameters come first.
std::vector<std::set<std::uint32_t>> fused(const std::vector<std::uint32_t>& fusion_config,
                                           const std::vector<std::uint32_t>& parameters) {
  std::vector<std::set<std::uint32_t>> groups(fusion_config.size());
  for (std::uint32_t gradient = 0; gradient < parameters.size(); ++gradient) {
    const auto group = std::lower_bound(fusion_config.begin(), fusion_config.end(), parameters[gradient]);
    groups.at(static_cast<std::size_t>(fusion_config.end() - group) - 1).insert(gradient);
  }
  return groups;
}

/// Gradients of the segments that end with these.
std::vector<std::set<std::uint32_t>> segments(const std::vector<std::uint32_t>& last_indices) {
  std::vector<std::set<std::uint32_t>> all;
  std::uint32_t gradient = 0;
  for (const std::uint32_t last : last_indices) {
    for (all.emplace_back(); gradient <= last; ++gradient) all.back().insert(gradient);
  }
  return all;
}

class TunerGivenBackToRun : public testing::TestWithParam<RoundTrip> {};

TEST_P(TunerGivenBackToRun, GivesThePredictedTime) {
  const std::string platform = find_platform(GetParam().platform);
  const TuneOptions options = options_of(GetParam());
  const Json best = Json::parse(run_in_child([&] { return tune_json(tune(options, platform)); }))["best"];
  ASSERT_GT(best["segments"].get<int>(), 1);

  RunOptions by_idx = options.run;
  by_idx.split_by_idx = best["by_idx"].get<std::vector<std::uint32_t>>();
  RunOptions by_size = options.run;
  by_size.split_by_size = best["by_size"].get<std::vector<double>>();
  for (const RunOptions& run : {by_idx, by_size}) {
    SCOPED_TRACE(run.split_by_idx.has_value() ? "by index" : "by size");
    const Json result = simulated(run, platform);
    const auto predicted = best["finish_s"].get<double>();
    EXPECT_NEAR(result["finish"].get<double>(), predicted, 1e-9 * predicted);
    EXPECT_EQ(result["finish"], best["simulated_finish_s"]);
    EXPECT_EQ(result["step"], best["simulated_step_s"]);
    // MindSpore's groups are the same segments where the report says so, and cut off as many gradients anyway.
    const auto groups = fused(best["all_reduce_fusion_config"].get<std::vector<std::uint32_t>>(),
                              result["parameters"].get<std::vector<std::uint32_t>>());
    const auto wanted = segments(*by_idx.split_by_idx);
    EXPECT_EQ(groups == wanted, best["all_reduce_fusion_config_exact"].get<bool>());
    ASSERT_EQ(groups.size(), wanted.size());
    for (std::size_t i = 0; i < groups.size(); ++i) EXPECT_EQ(groups[i].size(), wanted[i].size()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, TunerGivenBackToRun,
                         testing::Values(RoundTrip{"atlas800-9000"}, RoundTrip{"atlas800-9000", "lenet"},
                                         RoundTrip{"atlas800-9000-shared-pcie"}, RoundTrip{"atlas800-9000-x4"},
                                         RoundTrip{"atlas800t-a2", "vgg16"},
                                         RoundTrip{"atlas800t-a2-x2", "resnet18", DataType::bf16},
                                         RoundTrip{"atlas800t-a2-x2", "resnet18", DataType::fp32, hccl::LaunchMode::op},
                                         RoundTrip{"atlas800-9000", "lenet", DataType::fp16, hccl::LaunchMode::op},
                                         RoundTrip{"atlas900-a3", "alexnet", DataType::fp32, hccl::LaunchMode::op},
                                         RoundTrip{"atlas900-a3"}, RoundTrip{"atlas900-a3-superpod"}),
                         [](const auto& tested) {
                           const RoundTrip& trip = tested.param;
                           return test::case_name(fmt::format("{}_{}_{}_{}_mode", trip.platform, trip.model,
                                                              name_of(trip.type), name_of(trip.launch)));
                         });

struct Mode {
  std::string platform;
  std::vector<std::string> models;
};

class TunerBound : public testing::TestWithParam<Mode> {};

/// On every cost, in both launch modes, with and without overlap.
TEST_P(TunerBound, IsBelowEveryEndOfTheTable) {
  const std::string platform = find_platform(GetParam().platform);
  for (const std::string& model : GetParam().models) {
    for (const auto cost : {study::CostModel::affine, study::CostModel::table, study::CostModel::simulated}) {
      for (const auto launch : {hccl::LaunchMode::graph, hccl::LaunchMode::op}) {
        for (const bool hcom_parallel : {true, false}) {
          TuneOptions options = options_of({GetParam().platform, model, DataType::fp32, launch});
          options.run.hcom_parallel = hcom_parallel;
          options.run.iterations = 2;
          options.cost = cost;
          options.compare.reset();
          const Json report = Json::parse(run_in_child([&] { return tune_json(tune(options, platform)); }));
          SCOPED_TRACE(testing::Message() << model << ", cost " << name_of(cost) << ", launch "
                                          << static_cast<int>(launch) << ", hcom_parallel " << hcom_parallel);
          const double bound = report["best"]["bound_s"].get<double>() * (1 - 1e-9);
          EXPECT_GT(bound, report["backward_end_s"].get<double>());
          EXPECT_GE(report["best"]["finish_s"].get<double>(), bound);
          EXPECT_GE(report["best"]["simulated_finish_s"].get<double>(), bound);
          for (const char* const table : {"strategies", "by_segments"}) {
            for (const Json& split : report[table]) {
              if (split["by_idx"].is_null()) continue;  // DeAR
              EXPECT_GE(split["finish_s"].get<double>(), bound) << split.dump();
              EXPECT_GE(split["simulated_finish_s"].get<double>(), bound) << split.dump();
              EXPECT_GE(split["simulated_step_s"].get<double>(), bound) << split.dump();
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, TunerBound,
                         testing::Values(Mode{"atlas800-9000", {"lenet", "resnet18"}},
                                         Mode{"atlas800-9000-shared-pcie", {"lenet", "resnet18"}},
                                         Mode{"atlas800-9000-x4", {"lenet"}},
                                         Mode{"atlas800t-a2", {"lenet", "resnet18"}},
                                         Mode{"atlas800t-a2-x2", {"lenet"}}, Mode{"atlas900-a3", {"lenet"}}),
                         [](const auto& tested) { return test::case_name(tested.param.platform); });

TEST(Tuner, ReportsWhatProgramsReadByTheseKeys) {
  TuneOptions options = options_of({"atlas800-9000", "lenet"});
  options.compare.reset();
  const std::string platform = find_platform("atlas800-9000");
  const Json report = Json::parse(run_in_child([&] { return tune_json(tune(options, platform)); }));
  const Json& best = report["best"];
  for (const char* const key : {"finish_s", "exposed_s", "bound_s", "gap"}) EXPECT_TRUE(best[key].is_number()) << key;
  EXPECT_TRUE(best["segments"].is_number_unsigned());
  EXPECT_EQ(best["by_idx"].size(), best["segments"]);
  EXPECT_EQ(best["by_size"].size(), best["segments"]);
  EXPECT_DOUBLE_EQ(best["gap"].get<double>(), best["finish_s"].get<double>() / best["bound_s"].get<double>() - 1);
  EXPECT_DOUBLE_EQ(best["exposed_s"].get<double>(),
                   best["finish_s"].get<double>() - report["backward_end_s"].get<double>());
  std::set<std::string> not_simulated;
  ASSERT_GE(report["strategies"].size(), 8U);
  for (const Json& split : report["strategies"]) {
    for (const char* const key : {"finish_s", "exposed_s"}) EXPECT_TRUE(split[key].is_number()) << split.dump();
    EXPECT_EQ(split.at("by_idx").is_null(), split.at("simulated_step_s").is_null()) << split.dump();
    if (split["simulated_step_s"].is_null()) not_simulated.insert(split["name"].text());
  }
  EXPECT_EQ(not_simulated, std::set<std::string>{"DeAR"});
  ASSERT_EQ(report["by_segments"].size(), 8U);
  for (std::size_t k = 0; k < 8; ++k) {
    SCOPED_TRACE(fmt::format("{} segments", k + 1));
    const Json& split = report["by_segments"][k];
    EXPECT_EQ(split["k"], k + 1);
    EXPECT_LE(split["by_idx"].size(), k + 1);
    for (const char* const key : {"finish_s", "simulated_step_s"}) EXPECT_TRUE(split[key].is_number()) << split.dump();
  }
}

TEST(Tuner, TiesAreBrokenInOneWay) {
  TuneOptions options = options_of({"atlas800-9000"});
  options.cost = study::CostModel::affine;
  options.compare.reset();
  const std::string platform = find_platform("atlas800-9000");
  const Json report = Json::parse(run_in_child([&] { return tune_json(tune(options, platform)); }));
  const auto segments = report["best"]["segments"].get<std::size_t>();
  ASSERT_EQ(report["by_segments"].size(), 8U);
  for (std::size_t k = segments; k <= 8; ++k) {
    EXPECT_EQ(report["by_segments"][k - 1]["by_idx"], report["best"]["by_idx"]) << k;
  }
}

TEST(Tuner, ReadyTimesUnderJitterAreThoseOfTheRun) {
  // Without overlap the kernels are numbered alike in plan and draw, and the first iteration begins on all NPUs at
  // once.
  RunOptions options;
  options.model = "lenet";
  options.npus = 1;
  options.iterations = 1;
  options.skew.jitter = 0.1;
  const std::string platform = find_platform("atlas800-9000");
  const Json both = Json::parse(run_in_child([&] {
    sim::Cluster cluster(platform);
    Experiment run(options, cluster);
    const std::vector<Seconds> drawn = study::jittered_ready(run.workload, run.training.skew, 1, 0);
    const auto result = simulate_training(run.cluster, run.workload, run.soc, run.costs, run.training);
    return Json{{"drawn", drawn}, {"simulated", result.gradient_ready}}.dump();
  }));
  ASSERT_EQ(both["drawn"].size(), 10U);
  for (std::size_t i = 0; i < both["drawn"].size(); ++i) {
    SCOPED_TRACE(fmt::format("date {}", i));
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
  const Json report = Json::parse(run_in_child([&] { return tune_json(tune(options, platform)); }));
  const Json& range = report["bandwidth_range"];
  EXPECT_EQ(range["intervals"].front()["from"], 0.25);
  EXPECT_EQ(range["intervals"].back()["to"], 4.0);
  ASSERT_GT(range["intervals"].size(), 1U);
  bool found = false;
  for (const Json& interval : range["intervals"]) {
    found = found || (interval["from"].get<double>() <= 1 && interval["to"].get<double>() >= 1 &&
                      interval["by_idx"] == report["best"]["by_idx"]);
  }
  EXPECT_TRUE(found) << range.dump();
  EXPECT_GT(range["at_lowest"]["regret_s"].get<double>(), 0);
  EXPECT_EQ(range["at_lowest"]["best_by_idx"].size(), range["intervals"].front()["by_idx"].size());
  EXPECT_LE(report["jitter"]["optimal"].get<int>(), report["jitter"]["draws"].get<int>());
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
