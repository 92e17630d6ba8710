#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"

/// What a step needs of the host besides its kernels and communication: passes over the finished Plan.
///
/// *Input.* Every rank that reads samples has data workers, which prepare a batch per step, and copies it to the
/// device. The first task that computes waits for it. Batches are prepared ahead of the steps that use them, as far as
/// the queue has room: when a step begins, its batch leaves the queue. The batch of the next step is copied while a
/// step is under way, so that one batch waits on the device and the others in the memory of the host. A batch is that
/// of all micro-batches of the step, as MindSpore cuts it into micro-batches on the device. The first step begins from
/// rest: it waits for its batch.
///
/// *Checkpoints.* Behind every so many steps each rank writes its weights and its optimizer state before it goes on.
namespace hcclsim::hccl {

/// Rows that MindSpore's data pipeline holds ready: get_prefetch_size() of mindspore.dataset.config, if it was not set.
inline constexpr std::uint32_t default_prefetch = 16;

struct InputPipeline {
  /// What a rank reads for a step.
  struct Batch {
    std::uint64_t samples = 0;
    Bytes bytes = 0;
  };
  std::uint32_t prefetch = default_prefetch;  ///< batches that may be ready; 0: a batch is prepared when a step begins
  std::vector<Batch> of_stage;                ///< of the ranks of each stage; without samples they read nothing
};

/// Says how each rank gets its batches.
struct InputOptions {
  InputPipeline pipeline;
  std::vector<double> samples_per_second;  ///< that the data workers of each rank prepare
};

void add_input(Plan& plan, const InputPipeline& input);

struct CheckpointWrites {
  std::uint32_t every = 0;       ///< steps, at least one: behind step number `every`, 2 · `every`, …
  BytesPerSecond bandwidth = 0;  ///< of each rank
  std::uint32_t steps_done = 0;  ///< of the training, before the first one of the Plan

  /// Weights and optimizer state of a rank that carries out the program.
  [[nodiscard]] static Bytes bytes_of(const models::Program& program) {
    return program.weights + program.optimizer_state;
  }
};

void add_checkpoints(Plan& plan, const CheckpointWrites& writes);

/// A checkpoint of a role. It follows all else of its steps, and nothing waits for it.
struct CheckpointWrite {
  Seconds duration = 0;
  StepRange steps;

  /// The first of its steps from that one on.
  [[nodiscard]] std::uint32_t next(std::uint32_t step) const;
};

[[nodiscard]] bool writes_checkpoint(const PlanTask& task);
[[nodiscard]] std::vector<CheckpointWrite> checkpoints_of(const Role& role);

/// The same Plan whose hosts work in no time.
[[nodiscard]] Plan without_host_times(Plan plan);
/// The same Plan where preparing a batch takes what the data workers of each rank need: ranks of a role have one rate.
[[nodiscard]] Plan with_batch_times(Plan plan, const std::vector<double>& samples_per_second);

}  // namespace hcclsim::hccl
