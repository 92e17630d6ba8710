#include "device/numerics/onednn/weight_memory.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hcclsim::device::onednn {

WeightMemory::WeightMemory(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)), flat_(plan_->elements * sizeof(float)), copy_block_(plan_->prepared_bytes) {
  make_memories();
}

WeightMemory::WeightMemory(const WeightMemory& other)
    : plan_(other.plan_), flat_(other.flat_), copy_block_(other.copy_block_) {
  make_memories();
}

Bytes WeightMemory::bytes(const Plan& plan) { return plan.elements * sizeof(float) + plan.prepared_bytes; }

void WeightMemory::make_memories() {
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

void WeightMemory::prepare(WorkerPool& pool) {
  pool.for_each(largest_first_.size(), [this](std::size_t item, unsigned) { prepare_copy(largest_first_[item]); });
}

void WeightMemory::prepare_copy(std::size_t copy) const {
  const PreparedCopy& prepared = plan_->prepared[copy];
  MemoryBlock scratch(prepared.scratchpad.get_size());
  dnnl::stream stream(plan_->engine);
  prepared.reorder.execute(stream,
                           {{DNNL_ARG_FROM, weights_[prepared.gradient]},
                            {DNNL_ARG_TO, copies_[copy]},
                            {DNNL_ARG_SCRATCHPAD, dnnl::memory(prepared.scratchpad, plan_->engine, scratch.data())}});
}

}  // namespace hcclsim::device::onednn
