#include "cli/training_loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/child_process.hpp"
#include "base/error.hpp"

namespace hcclsim::cli {
namespace {

using testing::ElementsAre;

/// A loop that notes what is done: the steps that are checked, and after how many steps it saves.
struct Recorder {
  std::vector<bool> checked;
  std::vector<std::size_t> saves;
  int signal_in_step = 0;  ///< step, from 1 on, in which this process sends itself a SIGTERM; 0: none

  std::size_t run(std::uint32_t iterations, std::uint32_t save_every) {
    Progress progress;
    const Interruption interruption;
    TrainingLoop loop;
    loop.iterations = iterations;
    loop.save_every = save_every;
    loop.step = [this](bool check) {
      checked.push_back(check);
      if (checked.size() == static_cast<std::size_t>(signal_in_step)) std::raise(SIGTERM);
      return NumericsIteration{.iteration = checked.size(), .loss = 1};
    };
    loop.save = [this] { saves.push_back(checked.size()); };
    return run_training(loop, progress, interruption).size();
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

TEST(TrainingLoop, ASignalEndsItAfterTheStepAndSaves) {
  Recorder recorder;
  recorder.signal_in_step = 2;
  EXPECT_EQ(recorder.run(100, 50), 2);
  EXPECT_THAT(recorder.saves, ElementsAre(2));
}

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
              return std::to_string(interruption.signal());
            }),
            std::to_string(SIGTERM));
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

TEST(Interruption, GivesTheSignalsBack) {
  std::signal(SIGINT, SIG_IGN);
  {
    const Interruption interruption;
    EXPECT_THROW(Interruption(), Error);  // one at a time
  }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

TEST(Interrupted, ExitStatusOfShells) {
  EXPECT_EQ(Interrupted(SIGINT).exit_status(), 130);
  EXPECT_EQ(Interrupted(SIGTERM).exit_status(), 143);
}

TEST(ProgressLine, RateAndTimeLeft) {
  EXPECT_EQ(progress_line(0, 100, 2.5, 0), "iteration 0/100, loss 2.5000");
  EXPECT_EQ(progress_line(10, 100, 2.3012, 2), "iteration 10/100, loss 2.3012, 5 iterations/s, 18 s left");
  EXPECT_EQ(progress_line(1, 1000, 1, 0.25), "iteration 1/1000, loss 1.0000, 4 iterations/s, 4 min 10 s left");
  EXPECT_EQ(progress_line(1, 5000, 1, 3), "iteration 1/5000, loss 1.0000, 0.333 iterations/s, 4 h 09 min left");
}

}  // namespace
}  // namespace hcclsim::cli
