#include "cli/training_loop.hpp"

#include <utility>

namespace hcclsim::cli {

std::vector<NumericsIteration> run_training(const TrainingLoop& loop, Progress& progress,
                                            const Interruption& interruption) {
  std::vector<NumericsIteration> done;
  std::size_t saved = 0;
  progress.start();
  while (done.size() < loop.iterations && interruption.signal() == 0) {
    done.push_back(loop.step(done.empty() || done.size() + 1 == loop.iterations));
    progress.update(
        [&](double seconds) { return progress_line(done.size(), loop.iterations, done.back().loss, seconds); });
    if (loop.save && loop.save_every > 0 && done.size() % loop.save_every == 0) {
      loop.save();
      saved = done.size();
    }
  }
  if (loop.save && saved < done.size()) loop.save();
  progress.erase();
  return done;
}

}  // namespace hcclsim::cli
