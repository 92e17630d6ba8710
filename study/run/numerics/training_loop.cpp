#include "study/run/numerics/training_loop.hpp"

#include "base/user_error.hpp"

namespace hcclsim::study {
namespace {

/// Does something and returns the error of a user, or of what the user gave, that it ends with.
std::optional<Error> failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
    return error;
  } catch (const std::exception& thrown) {
    std::optional<Error> error = user_error(thrown);
    if (!error.has_value()) throw;
    return error;
  }
  return std::nullopt;
}

}  // namespace

TrainingOutcome run_training(const TrainingLoop& loop, const TrainingWatch& watch) {
  TrainingOutcome outcome;
  std::vector<NumericsIteration>& done = outcome.iterations;
  std::size_t saved = 0;
  const auto save = [&] {
    if (!loop.save || saved == done.size()) return;
    saved = done.size();  // what fails once is not tried again
    loop.save();
  };
  outcome.failure = failure_of([&] {
    while (done.size() < loop.iterations && !(watch.stop && watch.stop())) {
      done.push_back(loop.step(done.empty() || done.size() + 1 == loop.iterations));
      if (watch.step) watch.step(done.back(), done.size(), loop.iterations);
      if (loop.save_every > 0 && done.size() % loop.save_every == 0) save();
    }
  });
  const std::optional<Error> unsaved = failure_of(save);
  if (!outcome.failure.has_value()) outcome.failure = unsaved;
  if (loop.save_gradients && !done.empty()) {
    const std::optional<Error> no_gradients = failure_of(loop.save_gradients);
    if (!outcome.failure.has_value()) outcome.failure = no_gradients;
  }
  if (watch.end) watch.end();
  return outcome;
}

}  // namespace hcclsim::study
