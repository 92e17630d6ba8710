#pragma once

#include <cstdint>
#include <vector>

#include "hccl/ps/replay.hpp"
#include "hccl/ps/simulation.hpp"
#include "study/jobs/ps/ps.hpp"

/// Real gradients of jobs with parameter servers, in the shape and with the settings of the run's numerics.
namespace hcclsim::study {

/// What repeats a job on these workers and servers.
class PsTraining {
 public:
  /// Throws Error(bad_input) as training without servers does, and "unsupported" for what has no real numbers.
  explicit PsTraining(const PsExperiment& made, std::uint32_t checkpoint_every);

  [[nodiscard]] hccl::Replay& replay() { return replay_; }
  /// Of data parallelism on the same workers and samples: the mean loss of all workers, step by step.
  [[nodiscard]] std::vector<double> losses_of_data_parallelism(Experiment& experiment, std::uint32_t steps) const;
  /// Without steps.
  [[nodiscard]] PsNumerics description() const;
  /// Of training that has done these steps last, the first of which is the iteration `first`.
  [[nodiscard]] std::optional<Divergence> divergence(std::span<const WorkersStep> steps, std::uint64_t first) const;

 private:
  models::Graph graph_;
  NumericsSpec numerics_;
  hccl::ReplayOptions how_;
  hccl::Replay replay_;
};

/// Repeats the job that was simulated; and data parallelism beside it, if its number of workers stays the same.
[[nodiscard]] PsNumerics replay_numbers(PsExperiment& made, const hccl::PsOutcome& outcome);

/// Throws Error(bad_input, "unsupported") for a job whose time can be simulated, but not its numbers.
void require_numbers(const PsExperiment& made);

}  // namespace hcclsim::study
