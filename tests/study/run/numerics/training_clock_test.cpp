#include "study/run/numerics/training_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "study/run/run.hpp"

namespace hcclsim::study {
namespace {

RunSpec lenet(double jitter) {
  RunSpec spec;
  spec.platform.file = "atlas800-9000";
  spec.model = {.name = "lenet", .batch = 8};
  spec.npus = 2;
  spec.simulation.rank = 1;
  spec.skew = {.start_skew = 1e-4, .speed_spread = 0.1, .jitter = jitter};
  return spec;
}

struct Clocked {
  std::vector<Seconds> steps{};
  std::vector<std::vector<Seconds>> ends{};
  std::uint32_t in_full = 0;
  std::size_t notes = 0;
};

/// What the clock says of a training of so many iterations.
Clocked clocked(const RunSpec& spec, std::uint32_t iterations, const SimulatedPast& past = {}) {
  return on_experiment(spec, [&](Experiment& experiment) {
    TrainingClock clock(experiment, iterations, past);
    const hccl::TimedStep full = experiment.simulate(experiment.training);
    Clocked result{.in_full = experiment.training.simulation.iterations, .notes = experiment.notes.size()};
    clock.begin(full);
    for (std::uint32_t i = 0; i < iterations; ++i) {
      result.steps.push_back(clock.next());
      result.ends.push_back(clock.ends());
    }
    return result;
  });
}

/// Ends of as many iterations that are simulated at once.
std::vector<std::vector<Seconds>> simulated_ends(const RunSpec& spec, std::uint32_t iterations) {
  return on_experiment(spec, [&](Experiment& experiment) {
    experiment.training.simulation.iterations = iterations;
    return experiment.simulate(experiment.training).iteration_ends;
  });
}

TEST(TrainingClock, JitterIsThatOfALongSimulation) {
  const RunSpec spec = lenet(0.05);
  const auto ends = simulated_ends(spec, 50);
  const Clocked result = clocked(spec, 50);
  EXPECT_EQ(result.ends, ends);
  EXPECT_EQ(result.in_full, 20);
  EXPECT_EQ(result.notes, clocked(spec, 20).notes + 1);
  for (std::size_t i = 1; i < ends.size(); ++i) EXPECT_EQ(result.steps[i], ends[i][1] - ends[i - 1][1]);
  EXPECT_NE(result.steps[48], result.steps[49]);
}

TEST(TrainingClock, ATrainingThatGoesOnHasTheTimesOfOneThatWasNotInterrupted) {
  for (const double jitter : {0.0, 0.05}) {
    const RunSpec spec = lenet(jitter);
    const Clocked whole = clocked(spec, 60);
    for (const std::uint32_t done : {1U, 19U, 20U, 21U, 22U, 35U}) {
      SCOPED_TRACE(testing::Message() << "jitter " << jitter << ", after " << done);
      const Clocked rest = clocked(spec, 60 - done, {done, whole.ends[done - 1]});
      EXPECT_TRUE(std::equal(rest.steps.begin(), rest.steps.end(), whole.steps.begin() + done, whole.steps.end()));
      EXPECT_EQ(rest.ends.back(), whole.ends.back());
    }
  }
}

TEST(TrainingClock, ACompressedTrainingIsSimulatedInFull) {
  RunSpec spec = lenet(0);
  spec.step.compression = hccl::CompressionPlan{{.start = 30}};
  const Clocked whole = clocked(spec, 50);
  EXPECT_EQ(whole.in_full, 50U);
  EXPECT_EQ(whole.notes, clocked(spec, 20).notes);
  EXPECT_EQ(whole.ends, simulated_ends(spec, 50));
  const Clocked rest = clocked(spec, 15, {35, whole.ends[34]});
  EXPECT_EQ(rest.in_full, 15U) << "only its own iterations";
  EXPECT_NEAR(rest.ends.back()[0], whole.ends.back()[0], 1e-12);
}

TEST(TrainingClock, AStepThatRepeatsItselfIsNotSimulatedForEver) {
  // Two million iterations to skip: simulated, they would take hours.
  RunSpec spec = lenet(0);
  const Clocked long_one = clocked(spec, 2, {2'000'000, {}});
  EXPECT_EQ(long_one.steps[0], long_one.steps[1]);
  const auto ends = simulated_ends(spec, 40);
  EXPECT_NEAR(long_one.steps[1], ends[39][1] - ends[38][1], 1e-9 * long_one.steps[1]);
}

TEST(TrainingClock, WithoutDatesJitterGoesOnFromZero) {
  const RunSpec spec = lenet(0.05);
  const Clocked first = clocked(spec, 3);
  const Clocked later = clocked(spec, 3, {3, {}});
  EXPECT_NE(first.steps[1], later.steps[1]);
  EXPECT_EQ(later.ends[0][1], later.steps[0]);
}

TEST(TrainingClock, Repeats) {
  const std::vector<Seconds> first{1, 1.5};
  const std::vector<Seconds> second{2, 2.5};
  EXPECT_TRUE(repeats(first, second, std::vector<Seconds>{3, 3.5 + 1e-12}));
  EXPECT_FALSE(repeats(first, second, std::vector<Seconds>{3, 3.6}));
  EXPECT_FALSE(repeats(first, second, std::vector<Seconds>{3.1, 3.6}));
  EXPECT_FALSE(repeats(first, std::vector<Seconds>{2, 2.6}, std::vector<Seconds>{3, 3.6}));
}

}  // namespace
}  // namespace hcclsim::study
