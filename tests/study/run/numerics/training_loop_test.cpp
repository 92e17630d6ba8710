#include "study/run/numerics/training_loop.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;

/// A loop that notes what is done: the steps that are checked, after how many steps it saves, and what who watches it
/// is told.
struct Recorder {
  std::vector<bool> checked;
  std::vector<std::size_t> saves;
  std::vector<std::string> told;
  std::size_t last_step = SIZE_MAX;  ///< after which who watches has it stop

  std::size_t run(std::uint32_t iterations, std::uint32_t save_every) {
    TrainingLoop loop;
    loop.iterations = iterations;
    loop.save_every = save_every;
    loop.step = [this](bool check) {
      checked.push_back(check);
      return NumericsIteration{.iteration = checked.size(), .loss = 0.5};
    };
    loop.save = [this] { saves.push_back(checked.size()); };
    const TrainingWatch watch{
        .step = [this](const NumericsIteration& step, std::size_t done,
                       std::size_t total) { told.push_back(fmt::format("{} of {}, loss {}", done, total, step.loss)); },
        .end = [this] { told.emplace_back("end"); },
        .stop = [this] { return checked.size() >= last_step; }};
    return run_training(loop, watch).iterations.size();
  }
};

TEST(TrainingLoop, ChecksTheFirstAndTheLastStep) {
  Recorder recorder;
  EXPECT_EQ(recorder.run(4, 0), 4);
  EXPECT_THAT(recorder.checked, ElementsAre(true, false, false, true));
  EXPECT_THAT(recorder.saves, ElementsAre(4));
}

TEST(TrainingLoop, SavesOnTheWayAndAtTheEndOnce) {
  Recorder recorder;
  recorder.run(5, 2);
  EXPECT_THAT(recorder.saves, ElementsAre(2, 4, 5));
  Recorder even;
  even.run(4, 2);
  EXPECT_THAT(even.saves, ElementsAre(2, 4));
}

TEST(TrainingLoop, WhoWatchesEndsItAfterAStepAndItSaves) {
  Recorder recorder;
  recorder.last_step = 2;
  EXPECT_EQ(recorder.run(100, 50), 2);
  EXPECT_THAT(recorder.saves, ElementsAre(2));
  EXPECT_THAT(recorder.told, ElementsAre("1 of 100, loss 0.5", "2 of 100, loss 0.5", "end"));
}

TEST(TrainingLoop, NobodyNeedsToWatch) {
  TrainingLoop loop{.iterations = 3};
  loop.step = [](bool) { return NumericsIteration{}; };
  EXPECT_EQ(run_training(loop, {}).iterations.size(), 3);
}

TEST(TrainingLoop, AStepThatFailsLeavesWhatWasDone) {
  std::vector<std::size_t> saves;
  std::size_t steps = 0;
  TrainingLoop loop{.iterations = 10};
  loop.step = [&](bool) {
    if (++steps == 3) bad_input("data", "a file was cut off");
    return NumericsIteration{.iteration = steps};
  };
  loop.save = [&] { saves.push_back(steps); };
  bool ended = false;
  const TrainingOutcome outcome = run_training(loop, {.end = [&] { ended = true; }});
  EXPECT_EQ(outcome.iterations.size(), 2);
  EXPECT_THAT(saves, ElementsAre(3));  // while the third failed
  EXPECT_TRUE(ended);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->kind(), "data");
}

TEST(TrainingLoop, ACheckpointThatFailsEndsItAndIsNotTriedAgain) {
  int saves = 0;
  TrainingLoop loop{.iterations = 10, .save_every = 4};
  loop.step = [](bool) { return NumericsIteration{}; };
  loop.save = [&] {
    ++saves;
    bad_input("output", "disk full");
  };
  const TrainingOutcome outcome = run_training(loop, {});
  EXPECT_EQ(outcome.iterations.size(), 4);
  EXPECT_EQ(saves, 1);
  EXPECT_EQ(outcome.failure->kind(), "output");
}

TEST(TrainingLoop, ADefectIsNotAResult) {
  TrainingLoop loop{.iterations = 1};
  loop.step = [](bool) -> NumericsIteration { internal_error("a defect"); };
  EXPECT_THROW(static_cast<void>(run_training(loop, {})), Error);
}

}  // namespace
}  // namespace hcclsim::study
