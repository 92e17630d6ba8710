#pragma once

#include <list>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/computation.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "device/numerics/memory_block.hpp"
#include "device/numerics/worker_pool.hpp"

/// The replicas of data-parallel training: a flat gradient buffer for each, and weights and optimizer state that are
/// shared by all replicas that hold the same bits. A replica whose reduced gradient differs from the others' takes a
/// copy of its own (a fork) before the update; synchronous data parallelism with a correct allreduce never does.
namespace hcclsim::hccl {

/// Weights and optimizer state that `members` share.
struct Variant {
  device::Weights weights;
  device::OptimizerState optimizer;
  std::vector<Rank> members;  ///< ascending
};

class Replicas {
 public:
  Replicas(const device::Computation& computation, const device::OptimizerSettings& optimizer, Rank ranks);

  /// Bytes that all of it takes while the replicas are identical.
  [[nodiscard]] static Bytes bytes(const device::Computation& computation, const device::OptimizerSettings& optimizer,
                                   Rank ranks);

  [[nodiscard]] std::span<float* const> gradients() const { return gradient_of_; }
  [[nodiscard]] std::span<float> gradients_of(Rank rank) const { return {gradient_of_[rank], elements_}; }
  [[nodiscard]] const device::Weights& weights_of(Rank rank) const { return variant_of_[rank]->weights; }
  /// The one variant of identical replicas, or the variants in order of their first members.
  [[nodiscard]] std::list<Variant>& variants() { return variants_; }
  [[nodiscard]] const std::list<Variant>& variants() const { return variants_; }

  /// Forks variants whose members hold different gradients.
  void split(device::WorkerPool& pool);

 private:
  [[nodiscard]] bool same_gradients(device::WorkerPool& pool, Rank one, Rank other) const;

  std::uint64_t elements_;
  std::list<device::MemoryBlock> buffers_;
  std::vector<float*> gradient_of_;
  std::list<Variant> variants_;  // a list: variant_of_ points into it
  std::vector<Variant*> variant_of_;
};

}  // namespace hcclsim::hccl
