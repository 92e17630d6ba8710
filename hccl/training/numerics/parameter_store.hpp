#pragma once

#include <cstdint>
#include <span>

#include "device/numerics/computation.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/training/numerics/reduction_check.hpp"

/// Weights, gradients and optimizer state of all replicas of a role, and what they do with them together. Parameters
/// are named by their slots in the role's Computation; the last ones may be *borrowed*: another role owns and updates
/// them, and this one gets their values and gives their gradients. Where operators are cut over the replicas, each has
/// its part of a parameter (parameter_parts.hpp) as if it were the whole.
namespace hcclsim::hccl {

class CompressedReduction;

/// How far replicas that should be equal have drifted apart.
struct ReplicaCheck {
  std::uint64_t differing_bits = 0;
  double largest_difference = 0;

  void compare(std::span<const float> one, std::span<const float> other);
};

class ParameterStore {
 public:
  ParameterStore() = default;
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;
  virtual ~ParameterStore() = default;

  /// What a replica computes with.
  [[nodiscard]] virtual const device::Weights& weights_of(Rank replica) const = 0;
  /// Flat; after the reduction those of the whole batch, where the replica has them.
  [[nodiscard]] virtual std::span<float> gradients_of(Rank replica) const = 0;

  // Before the first step:
  /// Gives each replica weights that are drawn from its seed, but for parameters of which replicas have parts.
  virtual void start_apart(device::WorkerPool& pool, std::span<const std::uint64_t> seeds) = 0;
  /// Replaces these weights by what `broadcast`, a schedule of all replicas in fp32, makes of them.
  virtual void start_together(device::WorkerPool& pool, const Schedule& broadcast) = 0;

  virtual void begin_step() = 0;
  /// Puts together the weights of a gather of the role.
  virtual void gather(device::WorkerPool& pool, std::uint32_t number) = 0;
  /// Sends what one replica has updated to all others: a broadcast of the role.
  virtual void broadcast(device::WorkerPool& pool, std::uint32_t number) = 0;
  /// Replaces the value of a borrowed parameter by what each replica of another role has.
  virtual void borrow(std::size_t slot, const ParameterStore& owner, const device::ParameterSlot& place) = 0;
  /// Brings what passes read up to date with gathered and borrowed weights.
  virtual void prepare(device::WorkerPool& pool) = 0;
  /// Sums the gradients of segments over the replicas. Where a part is to be checked, compares scale · sum to fp64.
  /// Returns whether something left the range of the type on the wire.
  virtual bool reduce(device::WorkerPool& pool, std::span<const std::uint32_t> segments, float scale, CheckedPart part,
                      ReductionCheck& check) = 0;

  /// Sums the parts of gradients that replicas keep over those that keep the same ones; likewise.
  virtual bool mirror(device::WorkerPool& pool, std::span<const std::uint32_t> segments, float scale, CheckedPart part,
                      ReductionCheck& check);

  /// When all reductions are over: gradients that no other replica contributes to are complete as well.
  virtual void finish_gradients(device::WorkerPool& /*pool*/) {}

  /// The hook that reduces gradients, if one does: then to about their mean. Null: they are summed.
  [[nodiscard]] virtual CompressedReduction* compression() { return nullptr; }

  // Of reduced gradients.
  /// Multiplies them; `factors`: of slots.
  virtual void scale_gradients(device::WorkerPool& pool, std::span<const float> factors) = 0;
  /// L2 norm of them times `scale`.
  [[nodiscard]] virtual double norm(device::WorkerPool& pool, double scale) const = 0;
  [[nodiscard]] virtual bool gradients_finite(device::WorkerPool& pool) const = 0;
  virtual void update(device::WorkerPool& pool, double learning_rate, float scale) = 0;

  [[nodiscard]] virtual bool weights_finite(device::WorkerPool& pool) = 0;
  /// Adds differences between replicas: of weights, and of reduced gradients if wanted.
  virtual void compare_replicas(ReplicaCheck& check, bool gradients) const = 0;
  /// Different sets of weights: 1 unless replicas have drifted apart.
  [[nodiscard]] virtual std::size_t variants() const = 0;

  // The training state of a parameter, in storage layout: kind 0 the weights, then the states of the optimizer. Of
  // replicas that have the same part of it; those of a group are a parameter's holders (ParameterParts).
  [[nodiscard]] virtual std::size_t kinds() = 0;
  virtual void read(std::size_t kind, std::size_t slot, std::span<const Rank> holders, std::span<float> stored) = 0;
  /// To be followed by prepare().
  virtual void write(std::size_t kind, std::size_t slot, std::span<const Rank> holders,
                     std::span<const float> stored) = 0;
  /// The reduced gradient of a parameter, likewise.
  virtual void read_gradient(std::size_t slot, std::span<const Rank> holders, std::span<float> stored) const = 0;
  [[nodiscard]] virtual std::uint64_t optimizer_steps() const = 0;
  virtual void restore_steps(std::uint64_t steps) = 0;
};

}  // namespace hcclsim::hccl
