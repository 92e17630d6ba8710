#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <utility>
#include <vector>

#include "device/numerics/memory_block.hpp"
#include "device/numerics/onednn/plan.hpp"
#include "device/numerics/worker_pool.hpp"

namespace hcclsim::device::onednn {

/// The flat parameters, their prepared copies, and both as oneDNN's memory objects.
class WeightMemory {
 public:
  explicit WeightMemory(std::shared_ptr<const Plan> plan)
      : plan_(std::move(plan)), flat_(plan_->elements * sizeof(float)), copy_block_(plan_->prepared_bytes) {
    make_memories();
  }

  WeightMemory(const WeightMemory& other) : plan_(other.plan_), flat_(other.flat_), copy_block_(other.copy_block_) {
    make_memories();
  }

  WeightMemory& operator=(const WeightMemory&) = delete;
  ~WeightMemory() = default;

  [[nodiscard]] static Bytes bytes(const Plan& plan) { return plan.elements * sizeof(float) + plan.prepared_bytes; }

  [[nodiscard]] std::span<float> values() { return flat_.floats().first(plan_->elements); }
  [[nodiscard]] std::span<const float> values() const { return flat_.floats().first(plan_->elements); }
  void prepare(WorkerPool& pool) {
    pool.for_each(largest_first_.size(), [this](std::size_t item, unsigned) { prepare_copy(largest_first_[item]); });
  }

  /// Of an operand of kind weight or prepared.
  [[nodiscard]] dnnl_memory_t memory_of(const Operand& operand) const {
    return (operand.kind == Operand::Kind::weight ? weights_ : copies_)[operand.index].get();
  }

  [[nodiscard]] const Plan& plan() const { return *plan_; }

 private:
  void make_memories() {
    for (std::size_t i = 0; i < plan_->slots.size(); ++i) {
      weights_.emplace_back(plan_->storage[i].layout, plan_->engine, values().data() + plan_->slots[i].offset);
    }
    for (const PreparedCopy& copy : plan_->prepared) {
      copies_.emplace_back(copy.layout, plan_->engine, copy_block_.data() + copy.offset);
    }
    largest_first_.resize(copies_.size());
    std::iota(largest_first_.begin(), largest_first_.end(), 0);
    std::ranges::stable_sort(largest_first_, std::ranges::greater(),
                             [&](std::size_t copy) { return plan_->prepared[copy].layout.get_size(); });
  }

  void prepare_copy(std::size_t copy) const {
    const PreparedCopy& prepared = plan_->prepared[copy];
    MemoryBlock scratch(prepared.scratchpad.get_size());
    dnnl::stream stream(plan_->engine);
    prepared.reorder.execute(stream,
                             {{DNNL_ARG_FROM, weights_[prepared.gradient]},
                              {DNNL_ARG_TO, copies_[copy]},
                              {DNNL_ARG_SCRATCHPAD, dnnl::memory(prepared.scratchpad, plan_->engine, scratch.data())}});
  }

  std::shared_ptr<const Plan> plan_;
  MemoryBlock flat_;
  MemoryBlock copy_block_;
  std::vector<dnnl::memory> weights_;
  std::vector<dnnl::memory> copies_;
  std::vector<std::size_t> largest_first_;  ///< copies in the order in which workers take them
};

}  // namespace hcclsim::device::onednn
