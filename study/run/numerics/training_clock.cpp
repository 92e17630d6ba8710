#include "study/run/numerics/training_clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/codec.hpp"

namespace hcclsim::study {
namespace {

/// Simulates and sends the ends of iterations: all of them, or until the step repeats itself.
void send_ends(Experiment& experiment, const hccl::TrainingStep& training, const ChildStream::Send& send) {
  std::vector<Seconds> before;
  std::vector<Seconds> last;
  std::uint32_t done = 0;
  const bool may_repeat = !training.simulation.skew.jitters() && !training.step.checkpoints.has_value();
  const sim::FaultPlan* const faults = training.simulation.faults.get();
  const Seconds last_fault = faults == nullptr ? 0 : faults->last_change();
  hccl::simulate_iterations(
      experiment.cluster, experiment.soc, experiment.costs, training, [&](std::span<const Seconds> ends) {
        const bool steady = may_repeat && done >= iterations_in_full && !before.empty() &&
                            *std::ranges::min_element(before) >= last_fault && repeats(before, last, ends);
        before.swap(last);
        last.assign(ends.begin(), ends.end());
        ++done;
        send(encoded(last));
        return !steady;
      });
}

}  // namespace

bool repeats(std::span<const Seconds> first, std::span<const Seconds> second, std::span<const Seconds> third) {
  constexpr double rounding = 1e-9;
  const Seconds step = third.front() - second.front();
  for (std::size_t rank = 0; rank < third.size(); ++rank) {
    if (!(std::abs(third[rank] - second[rank] - step) <= rounding * step)) return false;
    if (!(std::abs(second[rank] - first[rank] - step) <= rounding * step)) return false;
  }
  return true;
}

TrainingClock::TrainingClock(Experiment& experiment, std::uint32_t iterations, const SimulatedPast& past)
    : rank_(experiment.training.simulation.rank) {
  hccl::StepSpec& step = experiment.training.step;
  hccl::SimulationOptions& options = experiment.training.simulation;
  if (past.iterations > 0 && (options.skew.jitters() || step.compression.has_value() || options.faults != nullptr)) {
    const bool known = past.ends.size() == experiment.npus;
    options.skew.go_on(past.iterations, known ? past.ends : std::vector<Seconds>(experiment.npus, 0));
    if (step.compression.has_value()) step.compression->steps_done = past.iterations;
    if (step.checkpoints.has_value()) step.checkpoints->steps_done = past.iterations;
  } else {
    skipped_ = past.iterations;  // the same again
  }
  const std::uint64_t all = std::uint64_t{skipped_} + iterations;
  // With compression the steps are not alike, and the figures of the run are those of all of them.
  const std::uint64_t in_full =
      step.compression.has_value() ? std::numeric_limits<std::int32_t>::max() : iterations_in_full;
  options.iterations = static_cast<std::uint32_t>(std::min(all, in_full));
  for (Rank rank = 0; rank < experiment.npus; ++rank) ends_.push_back(options.skew.start(rank));
  steps_.resize(ends_.size());
  if (all <= in_full) return;
  if (!options.skew.none() || options.faults != nullptr || step.checkpoints.has_value()) {
    experiment.notes.push_back(fmt::format(
        "the times above are of the first {} iterations; those of all {} are in the table of training steps",
        iterations_in_full, iterations));
  }
  hccl::TrainingStep later = experiment.training;
  later.simulation.iterations =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(all, std::numeric_limits<std::int32_t>::max()));
  later_.emplace([&](const ChildStream::Send& send) { send_ends(experiment, later, send); });
}

void TrainingClock::begin(const hccl::TimedStep& full) {
  full_ = &full;
  for (; skipped_ > 0; --skipped_) advance();
}

Seconds TrainingClock::next() {
  advance();
  return steps_[rank_];
}

void TrainingClock::advance() {
  std::optional<std::vector<Seconds>> ends;
  if (!later_.has_value()) {
    ends = full_->iteration_ends.at(index_);
  } else if (const std::optional<std::string> sent = later_->next()) {
    ends = decoded<std::vector<Seconds>>(*sent);
  }
  ++index_;
  if (ends.has_value()) {
    for (std::size_t rank = 0; rank < ends_.size(); ++rank) steps_[rank] = (*ends)[rank] - ends_[rank];
    ends_ = std::move(*ends);
  } else {
    for (std::size_t rank = 0; rank < ends_.size(); ++rank) ends_[rank] += steps_[rank];
  }
}

}  // namespace hcclsim::study
