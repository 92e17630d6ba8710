#include "study/run/training_loop.hpp"

namespace hcclsim::study {

std::vector<NumericsIteration> run_training(const TrainingLoop& loop, const TrainingWatch& watch) {
  std::vector<NumericsIteration> done;
  std::size_t saved = 0;
  if (watch.begin) watch.begin();
  while (done.size() < loop.iterations && !(watch.stop && watch.stop())) {
    done.push_back(loop.step(done.empty() || done.size() + 1 == loop.iterations));
    if (watch.step) watch.step(done.size(), loop.iterations, done.back().loss);
    if (loop.save && loop.save_every > 0 && done.size() % loop.save_every == 0) {
      loop.save();
      saved = done.size();
    }
  }
  if (loop.save && saved < done.size()) loop.save();
  if (watch.end) watch.end();
  return done;
}

}  // namespace hcclsim::study
