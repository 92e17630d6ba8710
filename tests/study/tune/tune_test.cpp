#include "study/tune/tune.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hccl/training/step_view.hpp"
#include "study/ready_times.hpp"
#include "study/run/run.hpp"
#include "study/shipped_platforms.hpp"
#include "tests/support/case_name.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::study {
namespace {

struct RoundTrip {
  std::string platform;
  std::string model = "resnet18";
  DataType type = DataType::fp32;
  hccl::LaunchMode launch = hccl::LaunchMode::graph;
};

TuneSpec spec_of(const RoundTrip& trip) {
  TuneSpec spec;
  spec.run.platform.file = find_platform(trip.platform);
  spec.run.model.name = trip.model;
  spec.run.communication_type = trip.type;
  spec.run.launch = trip.launch;
  spec.cost = CostModel::simulated;
  spec.compare = parse_strategies("optimal");
  return spec;
}

/// What tests look at of a TuneResult.
struct Tuned {
  Seconds backward_end = 0;
  Tuning tuning;
  Certificate certificate;
  std::vector<double> percentages;
  std::vector<std::uint32_t> mindspore;
  bool mindspore_exact = false;
  ConfirmedSplit best;
  std::vector<std::optional<ConfirmedSplit>> strategies;
  std::vector<ConfirmedSplit> by_segments;
  std::optional<JitterResult> jitter;
  std::optional<BandwidthResult> bandwidth;
};

Tuned tuned(const TuneSpec& spec) {
  return test::in_child([&] {
    const TuneResult result = tune(spec);
    return Tuned{result.backward_end, result.tuning,          result.certificate, result.percentages,
                 result.mindspore,    result.mindspore_exact, result.best,        result.strategies,
                 result.by_segments,  result.jitter,          result.bandwidth};
  });
}

struct SimulatedRun {
  Seconds finish = 0;                     ///< end of the last allreduce
  Seconds step = 0;                       ///< step time
  std::vector<std::uint32_t> parameters;  ///< of its gradients
};

SimulatedRun simulated(const RunSpec& spec) {
  return on_experiment(spec, [](Experiment& run) {
    const hccl::TimedStep step = run.simulate(run.training);
    const auto view = hccl::StepView::of(step.plan, step.trace, run.training.rank);
    SimulatedRun result{view.segments.back().end, step.step_times[run.training.rank], {}};
    for (const models::Gradient& gradient : run.program->gradients) result.parameters.push_back(gradient.parameter);
    return result;
  });
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
  const TuneSpec spec = spec_of(GetParam());
  const Tuned result = tuned(spec);
  const Split& best = result.tuning.best;
  ASSERT_GT(best.cuts.size(), 1U);

  RunSpec by_idx = spec.run;
  by_idx.split_by_idx = best.cuts;
  RunSpec by_size = spec.run;
  by_size.split_by_size = result.percentages;
  for (const RunSpec& run : {by_idx, by_size}) {
    SCOPED_TRACE(run.split_by_idx.has_value() ? "by index" : "by size");
    const SimulatedRun again = simulated(run);
    EXPECT_NEAR(again.finish, best.finish, 1e-9 * best.finish);
    EXPECT_EQ(again.finish, result.best.finish);
    EXPECT_EQ(again.step, result.best.step);
    // MindSpore's groups are the same segments where the result says so, and cut off as many gradients anyway.
    const auto groups = fused(result.mindspore, again.parameters);
    const auto wanted = segments(best.cuts);
    EXPECT_EQ(groups == wanted, result.mindspore_exact);
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

/// The end and the simulated times of a split are not below the bound.
void expect_not_below(Seconds bound, Seconds finish, const ConfirmedSplit& simulated) {
  EXPECT_GE(finish, bound);
  EXPECT_GE(simulated.finish, bound);
  EXPECT_GE(simulated.step, bound);
}

void expect_above_bound(const Tuned& result) {
  const Seconds bound = result.certificate.bound.finish * (1 - 1e-9);
  EXPECT_GT(bound, result.backward_end);
  expect_not_below(bound, result.tuning.best.finish, result.best);
  ASSERT_EQ(result.strategies.size(), result.tuning.strategies.size());
  for (std::size_t i = 0; i < result.strategies.size(); ++i) {
    const NamedSplit& split = result.tuning.strategies[i];
    if (split.cuts.empty()) continue;  // DeAR
    SCOPED_TRACE(split.name);
    ASSERT_TRUE(result.strategies[i].has_value());
    expect_not_below(bound, split.finish, *result.strategies[i]);
  }
  for (std::size_t k = 0; k < result.by_segments.size(); ++k) {
    SCOPED_TRACE(fmt::format("{} segments", k + 1));
    expect_not_below(bound, result.tuning.by_segments.at(k).finish, result.by_segments[k]);
  }
}

class TunerBound : public testing::TestWithParam<Mode> {};

/// On every cost, in both launch modes, with and without overlap.
TEST_P(TunerBound, IsBelowEveryEndOfTheTable) {
  for (const std::string& model : GetParam().models) {
    for (const auto cost : {CostModel::affine, CostModel::table, CostModel::simulated}) {
      for (const auto launch : {hccl::LaunchMode::graph, hccl::LaunchMode::op}) {
        for (const bool hcom_parallel : {true, false}) {
          TuneSpec spec = spec_of({GetParam().platform, model, DataType::fp32, launch});
          spec.run.hcom_parallel = hcom_parallel;
          spec.run.iterations = 2;
          spec.cost = cost;
          spec.compare.reset();
          const Tuned result = tuned(spec);
          SCOPED_TRACE(testing::Message() << model << ", cost " << name_of(cost) << ", launch " << name_of(launch)
                                          << ", hcom_parallel " << hcom_parallel);
          expect_above_bound(result);
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

TEST(Tuner, TiesAreBrokenInOneWay) {
  TuneSpec spec = spec_of({"atlas800-9000"});
  spec.cost = CostModel::affine;
  spec.compare.reset();
  const Tuned result = tuned(spec);
  ASSERT_EQ(result.by_segments.size(), 8U);
  const Cuts& best = result.tuning.best.cuts;
  for (std::size_t k = best.size(); k <= 8; ++k) EXPECT_EQ(result.tuning.by_segments.at(k - 1).cuts, best) << k;
}

TEST(Tuner, ReadyTimesUnderJitterAreThoseOfTheRun) {
  // Without overlap the kernels are numbered alike in plan and draw, and the first iteration begins on all NPUs at
  // once.
  RunSpec spec;
  spec.platform.file = "atlas800-9000";
  spec.model.name = "lenet";
  spec.npus = 1;
  spec.iterations = 1;
  spec.skew.jitter = 0.1;
  const auto [drawn, ready] = on_experiment(spec, [](Experiment& run) {
    std::vector<Seconds> drawn = jittered_ready(*run.program, run.training.skew, 1, 0);
    const hccl::TimedStep step = run.simulate(run.training);
    return std::pair(std::move(drawn), hccl::StepView::of(step.plan, step.trace, 0).gradient_ready);
  });
  ASSERT_EQ(drawn.size(), 10U);
  ASSERT_EQ(ready.size(), 10U);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    SCOPED_TRACE(fmt::format("date {}", i));
    EXPECT_NEAR(drawn[i], ready[i], 1e-12 * ready[i]);
  }
}

TEST(Tuner, TheNominalBandwidthIsPartOfTheChosenInterval) {
  TuneSpec spec = spec_of({"atlas800-9000"});
  spec.cost = CostModel::affine;
  spec.bandwidth_range = {.low = 0.25, .high = 4};
  spec.run.skew.jitter = 0.02;
  const Tuned result = tuned(spec);
  const BandwidthResult& range = result.bandwidth.value();
  EXPECT_EQ(range.intervals.front().from, 0.25);
  EXPECT_EQ(range.intervals.back().to, 4.0);
  ASSERT_GT(range.intervals.size(), 1U);
  const bool found =
      std::any_of(range.intervals.begin(), range.intervals.end(), [&](const BandwidthInterval& interval) {
        return interval.from <= 1 && interval.to >= 1 && interval.cuts == result.tuning.best.cuts;
      });
  EXPECT_TRUE(found);
  EXPECT_GT(range.at_lowest.time(), 0);
  EXPECT_EQ(range.at_lowest.best.cuts.size(), range.intervals.front().cuts.size());
  EXPECT_LE(result.jitter.value().outcome.optimal, result.jitter.value().outcome.draws);
}

}  // namespace
}  // namespace hcclsim::study
