#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/computation.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/parallel/plan.hpp"
#include "hccl/training/numerics/numeric_task.hpp"
#include "hccl/training/numerics/parameter_store.hpp"
#include "hccl/training/numerics/replica_communication.hpp"
#include "models/data/batch.hpp"
#include "models/graph.hpp"

/// What the ranks of one role of a Plan compute with real numbers: the passes of their part of the network, and the
/// sums of the gradients of a step's micro-batches.
namespace hcclsim::hccl {

/// A role before anything large is allocated for it.
struct StageSetup {
  /// `number`: of computing_roles(); `graph`: what the role computes; `tasks`: of all roles. Throws Error(bad_input) of
  /// kind "numerics" or "dtype".
  StageSetup(const Plan& plan, std::uint32_t number, models::Graph graph, std::span<const NumericTask> tasks,
             const device::ComputationOptions& options);

  /// What a TrainedStage takes with so many workers.
  [[nodiscard]] Bytes bytes(const device::OptimizerSettings& optimizer, unsigned workers) const;
  /// Workers that have a replica to compute.
  [[nodiscard]] unsigned places(unsigned workers) const;

  const Role* role;
  ReplicaCommunication communication;
  std::size_t owned = 0;  ///< parameters that no other role owns: those of the first slots
  device::Computation computation;
  std::uint32_t micro_batches = 1;
  std::uint32_t open_micro_batches = 0;  ///< of which messages or activations are kept at the same time, at most
  std::optional<CompressionSettings> compression;  ///< of reductions
};

class TrainedStage {
 public:
  TrainedStage(const StageSetup& setup, const device::OptimizerSettings& optimizer, device::Overflow overflow,
               std::uint64_t seed, device::WorkerPool& pool);
  TrainedStage(const TrainedStage&) = delete;
  TrainedStage& operator=(const TrainedStage&) = delete;
  ~TrainedStage();

  [[nodiscard]] const device::Computation& computation() const { return computation_; }
  [[nodiscard]] ParameterStore& store() { return *store_; }
  [[nodiscard]] const ParameterStore& store() const { return *store_; }
  [[nodiscard]] Rank replicas() const { return replicas_; }
  [[nodiscard]] std::uint32_t micro_batches() const { return micro_batches_; }
  /// Place of a parameter of the stage's graph.
  [[nodiscard]] std::size_t slot_of(std::uint32_t parameter) const { return slot_of_[parameter]; }

  /// Where a pass gets what it works on: the batch of a replica, and the scale and seeds of its step.
  struct Source {
    std::function<void(Rank replica, std::uint32_t micro_batch, models::Batch& batch)> read;
    std::function<device::StepInput(Rank replica, std::uint32_t micro_batch)> input;
  };

  void begin_step();
  /// Carries out a task that computes, for every replica.
  void compute(const NumericTask& task, const Source& source);
  /// Carries a message to `receiver`, which may be this stage: of every replica to that with the same number.
  void send(const NumericTask& task, TrainedStage& receiver, const Source& source);
  /// What the step keeps of a micro-batch is needed no more.
  void end(std::uint32_t micro_batch);

  /// Of the step so far: losses and rows with the right label, of every replica over its micro-batches; overflow.
  [[nodiscard]] std::span<const device::StepOutput> outputs() const { return outputs_; }

 private:
  struct Seat;
  using Seats = std::vector<std::unique_ptr<Seat>>;  // of each replica
  /// A gradient that a borrower gives back.
  struct Returned {
    std::size_t slot = 0;
    const ParameterStore* borrower = nullptr;
    device::ParameterSlot place;
  };

  void each_replica(const std::function<void(Rank replica, std::size_t place)>& work);
  Seats& seats_of(std::uint32_t micro_batch, const Source& source);
  void run(const NumericTask& task, Rank replica, Seat& seat, std::size_t place, const Source& source);
  /// Adds the gradients of a later micro-batch to those of the step: of a chunk, or of all.
  void accumulate(std::uint32_t chunk, bool whole_step, Rank replica, std::span<const float> gradients);
  void take_returned();

  device::WorkerPool& pool_;
  Rank replicas_;
  std::uint32_t micro_batches_;
  device::Computation computation_;
  std::unique_ptr<ParameterStore> store_;
  std::vector<std::size_t> slot_of_;         // of parameters
  std::vector<std::uint32_t> chunk_of_;      // of slots
  std::vector<bool> each_micro_batch_;       // of slots: their gradients are reduced with every micro-batch
  Seats places_;                             // of workers, for whole steps of replicas
  std::vector<std::vector<float>> scratch_;  // of workers: the gradients of a later micro-batch
  std::map<std::uint32_t, Seats> open_;      // of micro-batches
  std::vector<Seats> free_;
  std::vector<Returned> returned_;
  std::vector<device::StepOutput> outputs_;  // of replicas
};

}  // namespace hcclsim::hccl
