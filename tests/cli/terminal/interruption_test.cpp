#include "cli/terminal/interruption.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "study/run/numerics/training_loop.hpp"

namespace hcclsim::cli {
namespace {

TEST(Interruption, AChildsSignalIsSeenByItsParent) {
  const Interruption interruption;
  EXPECT_EQ(interruption.signal(), 0);
  EXPECT_EQ(run_in_child([] {
              std::raise(SIGINT);
              return std::string("goes on");
            }),
            "goes on");
  EXPECT_EQ(interruption.signal(), SIGINT);
}

TEST(Interruption, AParentsSignalIsSeenByItsChildWhileItWaits) {
  const Interruption interruption;
  const pid_t parent = ::getpid();
  EXPECT_EQ(run_in_child([&] {
              ::kill(parent, SIGTERM);
              while (interruption.signal() == 0) ::usleep(1000);
              return interruption.signal();
            }),
            SIGTERM);
}

TEST(Interruption, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const Interruption interruption;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(Interruption, EndsTheProcessUntilItBegins) {
  EXPECT_EXIT(
      {
        const Interruption interruption(Interruption::Begin::when_told);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
  Interruption interruption(Interruption::Begin::when_told);
  run_in_child([&] { interruption.begin(); });
  std::raise(SIGINT);
  EXPECT_EQ(interruption.signal(), SIGINT);
}

TEST(Interruption, GivesTheSignalsBack) {
  std::signal(SIGINT, SIG_IGN);
  {
    const Interruption interruption;
    EXPECT_THROW(Interruption(), Error);  // one at a time
  }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

TEST(Interruption, EndsATrainingAfterTheStepAndSaves) {
  const Interruption interruption;
  std::size_t steps = 0;
  std::vector<std::size_t> saves;
  study::TrainingLoop loop{.iterations = 100, .save_every = 50};
  loop.step = [&](bool) {
    if (++steps == 2) std::raise(SIGTERM);
    return study::NumericsIteration{.iteration = steps, .loss = 1};
  };
  loop.save = [&] { saves.push_back(steps); };
  EXPECT_EQ(run_training(loop, {.stop = [&] { return interruption.signal() != 0; }}).iterations.size(), 2);
  EXPECT_THAT(saves, testing::ElementsAre(2));
}

TEST(Interrupted, ExitStatusOfShells) {
  EXPECT_EQ(Interrupted(SIGINT).exit_status(), 130);
  EXPECT_EQ(Interrupted(SIGTERM).exit_status(), 143);
}

}  // namespace
}  // namespace hcclsim::cli
