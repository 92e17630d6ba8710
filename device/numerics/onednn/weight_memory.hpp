#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <vector>

#include "device/numerics/memory_block.hpp"
#include "device/numerics/onednn/plan.hpp"
#include "device/numerics/worker_pool.hpp"

namespace hcclsim::device::onednn {

/// The flat parameters, their prepared copies, and both as oneDNN's memory objects.
class WeightMemory {
 public:
  explicit WeightMemory(std::shared_ptr<const Plan> plan);
  WeightMemory(const WeightMemory& other);
  WeightMemory& operator=(const WeightMemory&) = delete;
  ~WeightMemory() = default;

  [[nodiscard]] static Bytes bytes(const Plan& plan);

  [[nodiscard]] std::span<float> values() { return flat_.floats().first(plan_->elements); }
  [[nodiscard]] std::span<const float> values() const { return flat_.floats().first(plan_->elements); }
  void prepare(WorkerPool& pool);

  /// Of an operand of kind weight or prepared.
  [[nodiscard]] dnnl_memory_t memory_of(const Operand& operand) const {
    return (operand.kind == Operand::Kind::weight ? weights_ : copies_)[operand.index].get();
  }
  [[nodiscard]] const Plan& plan() const { return *plan_; }

 private:
  void make_memories();
  void prepare_copy(std::size_t copy) const;

  std::shared_ptr<const Plan> plan_;
  MemoryBlock flat_;
  MemoryBlock copy_block_;
  std::vector<dnnl::memory> weights_;
  std::vector<dnnl::memory> copies_;
  std::vector<std::size_t> largest_first_;  ///< copies in the order in which workers take them
};

}  // namespace hcclsim::device::onednn
