#pragma once

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/computation.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "device/numerics/memory_block.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/training/numerics/compressed_reduction.hpp"
#include "hccl/training/numerics/parameter_parts.hpp"
#include "hccl/training/numerics/parameter_store.hpp"
#include "hccl/training/numerics/replicas/exchange.hpp"
#include "hccl/training/numerics/replicas/replica_communication.hpp"

/// Replicas that keep all that they compute with: a flat gradient buffer for each, and weights and optimizer state that
/// are shared by all replicas that hold the same bits. A replica whose reduced gradient differs from the others' takes
/// a copy of its own (a fork) before the update; synchronous data parallelism with a correct allreduce never does.
namespace hcclsim::hccl {

class Replicas : public ParameterStore {
 public:
  /// `owned`: the first parameters, which are not borrowed. `parts` must outlive the replicas. Weights are those that
  /// training starts from.
  Replicas(const device::Computation& computation, std::size_t owned, const ReplicaCommunication& communication,
           const ParameterParts& parts, const device::OptimizerSettings& optimizer, device::Overflow overflow,
           std::uint64_t seed, device::WorkerPool& pool);

  /// From now on gradients are reduced by a compression hook. `tensors`: of each segment, as it sees them.
  void compress(const CompressionSettings& settings, const ReplicaCommunication& communication,
                std::vector<std::vector<BucketTensor>> tensors, device::Overflow overflow);

  /// Bytes that all of it takes while replicas with the same parts are identical.
  [[nodiscard]] static Bytes bytes(const device::Computation& computation, const ReplicaCommunication& communication,
                                   const ParameterParts& parts, const device::OptimizerSettings& optimizer);

  [[nodiscard]] const device::Weights& weights_of(Rank replica) const override { return variant_of_[replica]->weights; }
  [[nodiscard]] std::span<float> gradients_of(Rank replica) const override {
    return {gradient_of_[replica], elements_};
  }
  void start_apart(device::WorkerPool& pool, std::span<const std::uint64_t> seeds) override;
  void start_together(device::WorkerPool& pool, const Schedule& broadcast) override;
  void begin_step() override {}
  void gather(device::WorkerPool& pool, std::uint32_t number) override;
  void broadcast(device::WorkerPool& pool, std::uint32_t number) override;
  void borrow(std::size_t slot, const ParameterStore& owner, const device::ParameterSlot& place) override;
  void prepare(device::WorkerPool& pool) override;
  bool reduce(device::WorkerPool& pool, std::span<const std::uint32_t> segments, float scale, CheckedPart part,
              ReductionCheck& check) override;
  void scale_gradients(device::WorkerPool& pool, std::span<const float> factors) override;
  [[nodiscard]] double norm(device::WorkerPool& pool, double scale) const override;
  [[nodiscard]] bool gradients_finite(device::WorkerPool& pool) const override;
  void update(device::WorkerPool& pool, double learning_rate, float scale) override;
  [[nodiscard]] bool weights_finite(device::WorkerPool& pool) override;
  void compare_replicas(ReplicaCheck& check, bool gradients) const override;
  [[nodiscard]] std::size_t variants() const override { return 1 + variants_.size() - kinds_of_parts_; }
  [[nodiscard]] std::size_t kinds() override { return 1 + variants_.front().optimizer.tensors().size(); }
  void read(std::size_t kind, std::size_t slot, std::span<const Rank> holders, std::span<float> stored) override;
  void write(std::size_t kind, std::size_t slot, std::span<const Rank> holders, std::span<const float> stored) override;
  void read_gradient(std::size_t slot, std::span<const Rank> holders, std::span<float> stored) const override;
  [[nodiscard]] std::uint64_t optimizer_steps() const override { return variants_.front().optimizer.steps(); }
  void restore_steps(std::uint64_t steps) override {
    for (Variant& variant : variants_) variant.optimizer.restore_steps(steps);
  }
  [[nodiscard]] CompressedReduction* compression() override { return compressed_.get(); }

 private:
  /// Weights and optimizer state that `members` share.
  struct Variant {
    device::Weights weights;
    device::OptimizerState optimizer;
    std::vector<Rank> members;  ///< ascending
  };

  /// Of the parameters that are not borrowed.
  [[nodiscard]] std::span<float> owned(std::span<float> flat) const { return flat.first(owned_elements_); }
  [[nodiscard]] std::span<const float> owned_gradients(Rank replica) const { return owned(gradients_of(replica)); }
  [[nodiscard]] static std::span<float> buffer_of(Variant& variant, std::size_t kind);
  /// Forks variants whose members hold different gradients of these segments.
  void split(device::WorkerPool& pool, std::span<const std::uint32_t> segments);
  [[nodiscard]] bool same_gradients(device::WorkerPool& pool, std::uint32_t segment, Rank one, Rank other) const;

  device::Computation computation_;
  const ParameterParts& parts_;
  std::size_t owned_;
  std::uint64_t elements_;
  std::uint64_t owned_elements_;
  std::vector<std::span<const device::ParameterSlot>> segments_;
  std::list<device::MemoryBlock> buffers_;
  std::vector<float*> gradient_of_;
  std::list<Variant> variants_;  // a list: variant_of_ points into it; in the order of their first members
  std::vector<Variant*> variant_of_;
  std::size_t kinds_of_parts_ = 0;  // variants of replicas that have not drifted apart
  GradientExchange exchange_;
  std::unique_ptr<CompressedReduction> compressed_;  // in its place
  bool changed_ = false;                             // weights since they were prepared
};

}  // namespace hcclsim::hccl
