#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "hccl/parallel/advice.hpp"
#include "hccl/parallel/split.hpp"

namespace hcclsim::hccl {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// 100 gradients of 1 MB, one ready per millisecond from 1 ms on; the backward pass ends with the last at 100 ms.
struct Network {
  std::vector<Bytes> sizes = std::vector<Bytes>(100, 1'000'000);
  std::vector<Seconds> ready = std::vector<Seconds>(100);
  std::vector<Seconds> updates = std::vector<Seconds>(100, 0.0);
  Seconds startup = 0;
  Seconds per_gradient = 0;

  Network(Seconds startup_time, Seconds time_per_gradient) : startup(startup_time), per_gradient(time_per_gradient) {
    for (std::size_t i = 0; i < ready.size(); ++i) ready[i] = static_cast<double>(i + 1) * 1e-3;
  }

  /// The step as it runs on one communication stream.
  [[nodiscard]] OverlappedStep step(const std::vector<double>& percentages) const {
    OverlappedStep step{
        .segments = {}, .sizes = sizes, .ready = ready, .backward_end = ready.back(), .updates = updates};
    Seconds free = 0;
    for (const Segment& segment : segments_from_last_indices(last_indices_by_size(percentages, sizes))) {
      const Seconds start = std::max(free, ready[segment.last]);
      free = start + startup + segment.tensors() * per_gradient;
      step.segments.push_back({segment, segment.tensors() * Bytes{1'000'000}, start, free});
      step.iteration_end = std::max(step.iteration_end, free);
      for (std::uint32_t g = segment.first; g <= segment.last; ++g) step.iteration_end += updates[g];
    }
    return step;
  }

  [[nodiscard]] Seconds end(const std::vector<double>& percentages) const { return step(percentages).iteration_end; }
};

TEST(SplitAdvice, Scenario1CutLater) {
  const Network network(0, 0.1e-3);  // AR1 of 50 MB takes 5 ms and ends long before 100 ms
  const SplitAdvice advice = advise_split(network.step({50, 50}));
  EXPECT_EQ(advice.scenario, SplitScenario::cut_later);
  EXPECT_THAT(advice.sentence, HasSubstr("AR1 ends within FP/BP and AR2 is long (5.000 ms after bp_end)"));
  ASSERT_THAT(advice.trials, Not(IsEmpty()));
  for (const auto& trial : advice.trials) {
    EXPECT_GT(100 - trial.back(), 50) << testing::PrintToString(trial);  // the last segment is smaller
  }
  EXPECT_LT(network.end(advice.trials.front()), network.end({50, 50}));
}

TEST(SplitAdvice, Scenario2CutEarlier) {
  // With 30 ms per start-up, more segments than two do not pay; AR1 of 95 MB starts at 95 ms and takes 39.5 ms.
  const Network network(30e-3, 0.1e-3);
  const SplitAdvice advice = advise_split(network.step({95, 5}));
  EXPECT_EQ(advice.scenario, SplitScenario::cut_earlier);
  EXPECT_THAT(advice.sentence, HasSubstr("AR1 ends 34.500 ms after bp_end"));
  ASSERT_THAT(advice.trials, Not(IsEmpty()));
  EXPECT_LT(network.end(advice.trials.front()), network.end({95, 5}));
}

TEST(SplitAdvice, Scenario3MoreSegments) {
  const Network network(0.1e-3, 0.9e-3);  // the link is busy nearly as long as the pass: one cut cannot hide it
  const SplitAdvice advice = advise_split(network.step({96, 4}));
  EXPECT_EQ(advice.scenario, SplitScenario::more_segments);
  ASSERT_THAT(advice.trials, Not(IsEmpty()));
  EXPECT_GT(advice.trials.front().size(), 2U);
  EXPECT_LT(network.end(advice.trials.front()), network.end({96, 4}));
}

TEST(SplitAdvice, OneSegmentIsScenario3) {
  const Network network(0.1e-3, 0.1e-3);
  const SplitAdvice advice = advise_split(network.step({100}));
  EXPECT_EQ(advice.scenario, SplitScenario::more_segments);
  EXPECT_THAT(advice.sentence, HasSubstr("one allreduce of all gradients ends 10.100 ms after bp_end"));
}

TEST(SplitAdvice, ALateRankIsNotMendedByACut) {
  const Network network(30e-3, 0.1e-3);
  OverlappedStep step = network.step({95, 5});
  step.segments[0].waited = true;
  const SplitAdvice advice = advise_split(step);
  EXPECT_EQ(advice.scenario, SplitScenario::well_split);
  EXPECT_THAT(advice.sentence, HasSubstr("AR1 mostly waits for a rank that is late"));
}

/// The best of two and three parts is the best of all lists of multiples of 0.5 %, found by trying each.
TEST(SplitAdvice, TrialsAreTheBestOfAllHalfPercentages) {
  for (const Seconds per_gradient : {0.1e-3, 0.6e-3, 0.95e-3}) {
    SCOPED_TRACE(fmt::format("{} s per gradient", per_gradient));
    Network network(0.3e-3, per_gradient);
    network.sizes[10] = 20'000'000;  // gradients of unequal size
    network.updates.assign(100, 0.05e-3);
    std::vector<Seconds> sums(100);
    std::partial_sum(network.sizes.begin(), network.sizes.end(), sums.begin(), std::plus<>());
    // Time of the end of a split; infinite where two of its cuts fall together.
    const auto exact = [&](const std::vector<double>& shares) {
      std::vector<double> ends(shares.size());
      std::partial_sum(shares.begin(), shares.end(), ends.begin());
      Seconds end = 0;
      Seconds updated = 0;
      double sent = 0;
      std::size_t done = 0;
      for (const std::size_t last : cuts_at(ends, network.sizes)) {
        if (last < done) return 1e300;
        end = std::max(end, network.ready[last]) + 0.3e-3 + (sums[last] - sent) * per_gradient / 1e6;
        updated = std::max(updated, end) + static_cast<double>(last + 1 - done) * 0.05e-3;
        sent = sums[last];
        done = last + 1;
      }
      return updated;
    };
    Seconds best_of_two = 1e300;
    Seconds best_of_three = 1e300;
    for (int a = 1; a < 200; ++a) {
      best_of_two = std::min(best_of_two, exact({a / 2.0, 100 - a / 2.0}));
      for (int b = 1; a + b < 200; ++b) {
        best_of_three = std::min(best_of_three, exact({a / 2.0, b / 2.0, 100 - a / 2.0 - b / 2.0}));
      }
    }
    OverlappedStep step = network.step({50, 50});  // sizes are unequal: give the costs themselves
    step.segments = {{{0, 49}, 50'000'000, 1, 1 + 0.3e-3 + 50 * per_gradient},
                     {{50, 99}, 10'000'000, 2, 2 + 0.3e-3 + 10 * per_gradient}};
    step.iteration_end = 10;
    int compared = 0;
    for (const auto& trial : advise_split(step).trials) {
      if (trial.size() > 3) continue;
      EXPECT_NEAR(exact(trial), trial.size() == 2 ? best_of_two : best_of_three, 1e-9);
      ++compared;
    }
    EXPECT_EQ(compared, 2);
  }
}

TEST(SplitAdvice, NothingBetter) {
  const Network network(1e-3, 0.01e-3);  // the start-up dominates: 99/1 leaves hardly more than one start-up
  const SplitAdvice advice = advise_split(network.step({97, 2, 1}));
  EXPECT_EQ(advice.scenario, SplitScenario::well_split);
  EXPECT_THAT(advice.trials, IsEmpty());
}

TEST(SplitAdvice, CountsTheUpdatesThatFollowASegment) {
  // Updates of 0.5 ms each: all but the last few gradients must be reduced early, so that their updates are hidden too.
  Network network(0.1e-3, 0.01e-3);
  network.updates.assign(100, 0.5e-3);
  const SplitAdvice advice = advise_split(network.step({97, 3}));
  ASSERT_THAT(advice.trials, Not(IsEmpty()));
  EXPECT_LT(advice.trials.front().front(), 97);
  EXPECT_LT(network.end(advice.trials.front()), network.end({97, 3}));
}

TEST(SplitAdvice, TrialsAreListsThatHcclTakes) {
  for (const Seconds per_gradient : {0.05e-3, 0.3e-3, 0.9e-3, 3e-3}) {
    for (const Seconds startup : {0.0, 0.1e-3, 2e-3}) {
      const Network network(startup, per_gradient);
      for (const auto& trial : advise_split(network.step({96.54, 3.46})).trials) {
        SCOPED_TRACE(
            fmt::format("{} s per gradient, start-up {} s, split {}", per_gradient, startup, fmt::join(trial, ",")));
        SplitStrategies strategies(0, 8);
        strategies.set_split_strategy_by_size(trial);
        EXPECT_EQ(strategies.resolve(world_group, network.sizes).size(), trial.size());
        EXPECT_LT(network.end(trial), network.end({96.54, 3.46}));
      }
    }
  }
}

TEST(SplitAdvice, FewGradients) {
  const std::vector<Bytes> sizes{8};
  const std::vector<Seconds> ready{1.0};
  const std::vector<Seconds> updates{0.5};
  const OverlappedStep one{{{{0, 0}, 8, 1.0, 2.0}}, sizes, ready, 1.0, updates, 2.5};
  EXPECT_EQ(advise_split(one).scenario, SplitScenario::well_split);
}

}  // namespace
}  // namespace hcclsim::hccl
