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
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/training/numerics/numeric_task.hpp"
#include "hccl/training/numerics/parameter_parts.hpp"
#include "hccl/training/numerics/parameter_store.hpp"
#include "hccl/training/numerics/replicas/replica_communication.hpp"
#include "hccl/training/numerics/replicas/stage_collectives.hpp"
#include "models/data/batch.hpp"
#include "models/graph.hpp"

/// What the ranks of one role of a Plan compute with real numbers: the passes of their part of the network, and the
/// sums of the gradients of a step's micro-batches. Where the network has collectives, all ranks go from one to the
/// next together.
namespace hcclsim::hccl {

/// A role before anything large is allocated for it.
struct StageSetup {
  /// `number`: of computing_roles(); `network`: the whole, which must outlive the stage; `stage`: what a rank of the
  /// role computes of it; `tasks`: of all roles; `make_schedule`: for collectives of another size than in the Plan, or
  /// empty. Throws Error(bad_input) of kind "numerics" or "dtype".
  StageSetup(const Plan& plan, std::uint32_t number, const models::Graph& network, const ShardedGraph& stage,
             std::span<const NumericTask> tasks, const device::ComputationOptions& options,
             const ScheduleMaker& make_schedule);

  /// What a TrainedStage takes with so many workers.
  [[nodiscard]] Bytes bytes(const device::OptimizerSettings& optimizer, unsigned workers) const;
  /// Workers that have a replica to compute.
  [[nodiscard]] unsigned places(unsigned workers) const;
  /// Buffers for the gradients of a later micro-batch: one per worker, or per rank if passes stop on the way.
  [[nodiscard]] unsigned scratches(unsigned workers) const;

  const Role* role;
  ReplicaCommunication communication;
  std::size_t owned = 0;  ///< parameters that no other role owns: those of the first slots
  device::Computation computation;
  ParameterParts parts;
  /// Of each rank, its place in its group of each family.
  std::vector<std::vector<std::uint32_t>> family_places{};
  /// Of each rank, what it has of the results of operators that draw random numbers; none: no operator is cut.
  std::vector<std::vector<device::TensorPart>> drawn_parts{};
  std::shared_ptr<StageCollectives> collectives{};  ///< inside the program; none: null
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
  [[nodiscard]] const ParameterParts& parts() const { return parts_; }
  [[nodiscard]] Rank replicas() const { return replicas_; }
  [[nodiscard]] std::uint32_t micro_batches() const { return micro_batches_; }
  /// The state of a whole parameter, row-major; kinds as the store has them.
  [[nodiscard]] std::vector<float> read(std::size_t kind, std::size_t slot);
  /// The reduced gradient of a whole parameter, row-major, with the loss scale.
  [[nodiscard]] std::vector<float> read_gradient(std::size_t slot) const;
  /// To be followed by the store's prepare().
  void write(std::size_t kind, std::size_t slot, std::span<const float> whole);
  /// Place of a parameter of the stage's graph.
  [[nodiscard]] std::size_t slot_of(std::uint32_t parameter) const { return slot_of_[parameter]; }

  /// Where a pass gets what it works on: the batch of a replica, and the scale and seeds of its step.
  struct Source {
    std::function<void(std::uint32_t micro_batch)> open;  ///< comes before those that read of a micro-batch
    std::function<void(Rank replica, std::uint32_t micro_batch, models::Batch& batch)> read;
    std::function<device::StepInput(Rank replica, std::uint32_t micro_batch)> input;
  };

  void begin_step();
  /// Carries out a task that computes, for every replica.
  void compute(const NumericTask& task, const Source& source);
  /// Carries a message to `receiver`, which may be this stage: of every replica to that with the same number.
  void send(const NumericTask& task, TrainedStage& receiver, const Source& source);
  /// Divides reduced gradients by the replicas that have the same of their parameter.
  void take_means();
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

  /// A whole parameter of what `read` gives of those that have the same part of it.
  [[nodiscard]] std::vector<float> whole(
      std::size_t slot, const std::function<void(std::span<const Rank> holders, std::span<float> stored)>& read) const;
  void each_replica(const std::function<void(Rank replica, std::size_t place)>& work);
  Seats& seats_of(std::uint32_t micro_batch, const Source& source);
  [[nodiscard]] std::span<float> scratch_of(std::size_t place);
  /// A pass of all replicas, from collective to collective.
  void run_pass(const NumericTask& task, Seats& seats, const Source& source);
  /// A part of it; of how many: `parts`.
  struct PassPart {
    std::uint32_t number = 0;
    std::uint32_t parts = 1;
  };
  void run(const NumericTask& task, PassPart part, Rank replica, Seat& seat, std::span<float> scratch,
           const Source& source);
  /// Adds the gradients of a later micro-batch to those of the step: of a chunk, or of all.
  void accumulate(std::uint32_t chunk, bool whole_step, Rank replica, std::span<const float> gradients);
  void take_returned();

  device::WorkerPool& pool_;
  Rank replicas_;
  std::uint32_t micro_batches_;
  device::Computation computation_;
  ParameterParts parts_;
  std::vector<std::vector<std::uint32_t>> family_places_;
  std::vector<std::vector<device::TensorPart>> drawn_parts_;
  std::shared_ptr<StageCollectives> collectives_;
  device::Overflow overflow_;
  std::unique_ptr<ParameterStore> store_;
  std::vector<std::size_t> slot_of_;         // of parameters
  std::vector<std::uint32_t> chunk_of_;      // of slots
  std::vector<bool> each_micro_batch_;       // of slots: their gradients are reduced with every micro-batch
  Seats places_;                             // of workers, for whole steps of replicas
  std::vector<std::vector<float>> scratch_;  // StageSetup::scratches(): the gradients of a later micro-batch
  std::map<std::uint32_t, Seats> open_;      // of micro-batches
  std::vector<Seats> free_;
  std::vector<Returned> returned_;
  std::vector<device::StepOutput> outputs_;  // of replicas
};

}  // namespace hcclsim::hccl
