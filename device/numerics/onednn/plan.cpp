#include "device/numerics/onednn/plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hcclsim::device::onednn {

const float* StepContext::weight_of(std::uint32_t gradient) const { return weights + plan->slots[gradient].offset; }

float* StepContext::gradient_of(std::uint32_t gradient) const { return gradients + plan->slots[gradient].offset; }

std::byte* StepContext::address(TensorId id) const {
  return block + plan->tensor(plan->tensor(id).root).offset + plan->tensor(id).skip;
}

std::size_t place_tensors(std::vector<Tensor>& tensors) {
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (index_of(tensors[i].root) == i && tensors[i].first <= tensors[i].last) waiting.push_back(i);
  }
  const auto bytes_of = [&](std::size_t i) { return aligned(tensors[i].layout.get_size()); };
  std::ranges::stable_sort(waiting, std::ranges::greater(), bytes_of);

  struct Range {
    std::size_t begin;
    std::size_t end;
  };
  std::size_t block_bytes = 0;
  std::vector<std::size_t> placed;
  std::vector<Range> taken;
  for (const std::size_t i : waiting) {
    Tensor& tensor = tensors[i];
    taken.clear();
    for (const std::size_t other : placed) {
      if (tensors[other].last < tensor.first || tensor.last < tensors[other].first) continue;
      taken.push_back({tensors[other].offset, tensors[other].offset + bytes_of(other)});
    }
    std::ranges::sort(taken, {}, &Range::begin);
    const std::size_t bytes = bytes_of(i);
    tensor.offset = 0;
    for (const Range& range : taken) {
      if (tensor.offset + bytes <= range.begin) break;
      tensor.offset = std::max(tensor.offset, range.end);
    }
    block_bytes = std::max(block_bytes, tensor.offset + bytes);
    placed.push_back(i);
  }
  return block_bytes;
}

}  // namespace hcclsim::device::onednn
