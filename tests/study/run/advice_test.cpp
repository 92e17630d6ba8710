#include "study/run/advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "study/run/split/optimum.hpp"

/// Hand-computed steps of a network with ten gradients of 1 MB, ready at 1, 2, … 10 ms.
namespace hcclsim::study {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Seconds ms = 1e-3;

struct Network {
  AffineCost cost;  ///< of bytes
  std::vector<Seconds> updates = std::vector<Seconds>(10, 0);
  std::vector<Bytes> bytes = std::vector<Bytes>(10, 1'000'000);

  [[nodiscard]] SplitProblem problem() const {
    std::vector<Seconds> ready;
    for (int i = 1; i <= 10; ++i) ready.push_back(i * ms);
    return {ready, bytes, {.of_gradients = updates}};
  }

  [[nodiscard]] SimulatedStep step(const Cuts& cuts) const {
    SimulatedStep step{.ready = {}, .backward_end = 10 * ms, .segments = {}, .step = 0, .phases = {}};
    for (const SegmentTime& segment : timeline(problem(), cost, cuts)) {
      step.segments.push_back({segment.start, segment.end, false});
    }
    step.step = timed(problem(), cost, cuts).step;
    step.phases.tail = step.step - step.backward_end;
    step.phases.last_update = step.step - std::max(step.backward_end, step.segments.back().end);
    return step;
  }

  /// The best splits of each number of segments, the best of all first.
  [[nodiscard]] std::vector<Trial> trials(const Cuts& own) const {
    std::vector<Trial> found;
    for (std::uint32_t most = 1; most <= 8; ++most) {
      const Split best = best_split(problem(), cost, most, Objective::step);
      if (best.cuts == own || (!found.empty() && found.back().by_idx == best.cuts)) continue;
      const Seconds end = timeline(problem(), cost, best.cuts).back().end;
      found.push_back({.by_idx = best.cuts, .step_time = best.step, .hang_over = end - 10 * ms});
    }
    std::ranges::stable_sort(found, {}, &Trial::step_time);
    return found;
  }

  /// Advice for a split whose rivals are what the search finds.
  [[nodiscard]] SplitAdvice advice(const Cuts& cuts, const std::string& late_rank = "a rank that is late",
                                   bool waited = false) const {
    SimulatedStep own = step(cuts);
    own.segments.front().waited = waited;
    return advise_split({own, cuts}, problem(), cost, trials(cuts), late_rank);
  }
};

/// Each MB takes so many milliseconds, each allreduce `start_up` before.
Network network(double per_megabyte, double start_up = 0.1) { return {{start_up * ms, per_megabyte * ms / 1e6}}; }

TEST(SplitAdvice, Scenario1WhereTheTrialMovesTheCutBackward) {
  // AR1 of 5 MB: 5 to 6.1 ms. AR2 of 5 MB: 10 to 11.1 ms. The last gradient alone would end at 10.3.
  const SplitAdvice advice = network(0.2).advice({4, 9});
  EXPECT_EQ(advice.scenario, SplitScenario::cut_later);
  EXPECT_EQ(advice.sentence,
            "AR1 ends within FP/BP and AR2 is long (1.100 ms after bp_end): move the last cut "
            "backward and use 3 segments");
  EXPECT_TRUE(advice.try_best);
}

TEST(SplitAdvice, UpdatesThatAreLongAreNoAllreduce) {
  // AR1 of 9 MB: 9 to 9.19 ms, AR2 10 to 10.11. Updates of 0.5 ms each: 9.19 + 5 = 14.19; earlier segments can begin
  // their updates earlier.
  Network slow_updates = network(0.01);
  slow_updates.updates.assign(10, 0.5 * ms);
  const SplitAdvice advice = slow_updates.advice({8, 9});
  EXPECT_EQ(advice.scenario, SplitScenario::none);
  EXPECT_EQ(advice.sentence,
            "AR2 ends 0.110 ms after bp_end, and the updates after it take 4.080 ms: with other cuts more of them run "
            "within FP/BP");
  EXPECT_TRUE(advice.try_best);
  // So it is where AR1 ends late, or is the only one.
  slow_updates.cost.beta = 0.2 * ms / 1e6;
  EXPECT_THAT(slow_updates.advice({8, 9}).sentence, HasSubstr("AR2 ends 1.200 ms after bp_end, and the updates"));
  EXPECT_THAT(
      slow_updates.advice({9}).sentence,
      HasSubstr("one allreduce of all gradients ends 2.100 ms after bp_end, and the updates after it take 5.000"));
}

TEST(SplitAdvice, Scenario2WhereACutHidesTheFirst) {
  // AR1 of 9 MB: 9 to 13.6 ms. Of 6 MB: 6 to 9.1 ms.
  const SplitAdvice advice = network(0.5).advice({8, 9});
  EXPECT_EQ(advice.scenario, SplitScenario::cut_earlier);
  EXPECT_THAT(advice.sentence,
              HasSubstr("AR1 ends 3.600 ms after bp_end: move the cut forward to hide AR1 within FP/BP"));
  EXPECT_TRUE(advice.try_best);
  // One segment is a cut at the end.
  const SplitAdvice one = network(0.5).advice({9});
  EXPECT_EQ(one.scenario, SplitScenario::cut_earlier);
  EXPECT_EQ(one.sentence, "one allreduce of all gradients ends 5.100 ms after bp_end: cut it to hide AR1 within FP/BP");
}

TEST(SplitAdvice, Scenario3WhereTheFirstHasMostDataAndMovingTheCutGainsLittle) {
  // The third gradient takes 20 ms: AR1 9 to 33.1 ms. It cannot be hidden; behind two small segments, 1 to 1.6 and 2 to
  // 2.6 ms, it begins at 3 ms.
  Network large = network(0.5);
  large.bytes[2] = 40'000'000;
  const SplitAdvice advice = large.advice({8, 9});
  EXPECT_EQ(advice.scenario, SplitScenario::more_segments);
  EXPECT_EQ(advice.sentence, "AR1, which has 98.0 % of the data, ends 23.100 ms after bp_end: use 4 segments");
  EXPECT_TRUE(advice.try_best);
  const SplitAdvice one = large.advice({9});
  EXPECT_EQ(one.scenario, SplitScenario::more_segments);
  EXPECT_EQ(one.sentence, "one allreduce of all gradients ends 24.600 ms after bp_end: cut it into 4 segments");
}

TEST(SplitAdvice, Scenario3WhereNoCutHidesTheFirst) {
  // 1 MB takes 9.6 ms: the first gradient is ready at 1 ms and reduced at 10.6. Two segments do, the first of which is
  // one gradient.
  EXPECT_EQ(network(9.5).advice({8, 9}).scenario, SplitScenario::none);
  EXPECT_EQ(network(9.5).advice({9}).scenario, SplitScenario::more_segments);
  // A little faster, the first gradient alone is hidden: no longer.
  EXPECT_NE(network(8.8).advice({8, 9}).scenario, SplitScenario::more_segments);
}

TEST(SplitAdvice, FewerSegmentsAreNoScenario) {
  // Each allreduce takes 20 ms before its first byte: one of all gradients ends at 30.1 ms, two at 41.1 or later.
  const SplitAdvice advice = network(0.01, 20).advice({0, 8, 9});
  EXPECT_EQ(advice.scenario, SplitScenario::none);
  EXPECT_EQ(advice.sentence, "AR1 to AR3 end after bp_end, AR3 51.100 ms: 1 segment instead of 3 shortens the step");
  EXPECT_TRUE(advice.try_best);
}

TEST(SplitAdvice, SaysWhatItTakesForWorthIt) {
  // With three segments the last gradient is alone: 10 ms + 0.1 + 0.2.
  const Network slow = network(0.2);
  const Split best = best_split(slow.problem(), slow.cost, 8, Objective::step);
  const SplitAdvice own = slow.advice(best.cuts);
  EXPECT_EQ(own.scenario, SplitScenario::none);
  EXPECT_FALSE(own.try_best);
  EXPECT_THAT(own.sentence,
              HasSubstr("and no split of up to 8 segments was found whose step is shorter by 0.5 % or more"));
  EXPECT_THAT(own.sentence, Not(HasSubstr("the best takes")));
  // A split that is 0.4 % longer is told what the best takes.
  SimulatedStep longer = slow.step(best.cuts);
  longer.step = best.step * 1.004;
  const SplitAdvice close = advise_split({longer, best.cuts}, slow.problem(), slow.cost,
                                         std::vector{Trial{best.cuts, {}, best.step}}, "a rank that is late");
  EXPECT_FALSE(close.try_best);
  EXPECT_THAT(close.sentence, HasSubstr("; the best takes 10.300 ms"));
}

TEST(SplitAdvice, ALateRankIsTheCauseWithoutATry) {
  const SplitAdvice advice = network(0.5).advice({8, 9}, "rank 3, the slowest", true);
  EXPECT_EQ(advice.scenario, SplitScenario::none);
  EXPECT_FALSE(advice.try_best);
  EXPECT_EQ(advice.sentence,
            "AR1 mostly waits for rank 3, the slowest: that is the cause, and no cut mends it; what cuts can do beside "
            "it, `hcclsim tune` tells");
}

TEST(SplitAdvice, WithoutAnyTrial) {
  const Network fast = network(0.2);
  const SimulatedStep own = fast.step({9});
  const SplitAdvice advice = advise_split({own, {9}}, fast.problem(), fast.cost, {}, "a rank");
  EXPECT_EQ(advice.scenario, SplitScenario::none);
  EXPECT_FALSE(advice.try_best);
}

}  // namespace
}  // namespace hcclsim::study
