#include "models/program.hpp"

#include <algorithm>

namespace hcclsim::models {

std::vector<Bytes> Program::gradient_sizes() const {
  std::vector<Bytes> sizes;
  sizes.reserve(gradients.size());
  for (const Gradient& gradient : gradients) sizes.push_back(gradient.elements * size_of(gradient.dtype));
  return sizes;
}

std::vector<Bytes> live_bytes(const Program& program) {
  if (program.tensors.empty()) return {};
  std::vector<Bytes> starts(program.micro_batch_kernels, 0);
  std::vector<Bytes> ends(starts);
  for (const LiveTensor& tensor : program.tensors) {
    starts[tensor.first_kernel] += tensor.bytes;
    ends[tensor.last_kernel] += tensor.bytes;
  }
  std::vector<Bytes> bytes;
  bytes.reserve(starts.size());
  Bytes live = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    live += starts[i];
    bytes.push_back(live);
    live -= ends[i];
  }
  return bytes;
}

Bytes peak_live_bytes(const Program& program) {
  const std::vector<Bytes> bytes = live_bytes(program);
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace hcclsim::models
