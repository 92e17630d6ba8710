#include "study/run/training_loop.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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
        .begin = [this] { told.emplace_back("begin"); },
        .step = [this](std::size_t done, std::size_t total,
                       double loss) { told.push_back(fmt::format("{} of {}, loss {}", done, total, loss)); },
        .end = [this] { told.emplace_back("end"); },
        .stop = [this] { return checked.size() >= last_step; }};
    return run_training(loop, watch).size();
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
  EXPECT_THAT(recorder.told, ElementsAre("begin", "1 of 100, loss 0.5", "2 of 100, loss 0.5", "end"));
}

TEST(TrainingLoop, NobodyNeedsToWatch) {
  TrainingLoop loop{.iterations = 3};
  loop.step = [](bool) { return NumericsIteration{}; };
  EXPECT_EQ(run_training(loop, {}).size(), 3);
}

}  // namespace
}  // namespace hcclsim::study
