#include "models/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace hcclsim::models {

std::vector<Bytes> Program::gradient_sizes() const {
  std::vector<Bytes> sizes;
  sizes.reserve(gradients.size());
  for (const Gradient& gradient : gradients) sizes.push_back(gradient.elements * size_of(gradient.dtype));
  return sizes;
}

bool Program::has_several_gradient_types() const {
  return std::ranges::any_of(gradients, [&](const Gradient& gradient) { return gradient.dtype != gradient_type(); });
}

std::string Program::gradient_type_text() const {
  std::set<std::pair<int, DataType>> types;
  for (const Gradient& gradient : gradients) types.insert({-static_cast<int>(size_of(gradient.dtype)), gradient.dtype});
  if (types.empty()) return std::string(name_of(gradient_type()));
  std::string text;
  for (const auto& [size, type] : types) text += fmt::format("{}{}", text.empty() ? "" : " and ", name_of(type));
  return text;
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

std::vector<Pass> passes(const Program& program) {
  std::vector<Pass> passes;
  for (std::uint32_t k = 0; k < program.micro_batch_kernels; ++k) {
    const Kernel& kernel = program.kernels[k];
    if (passes.empty() || passes.back().phase != kernel.phase || passes.back().chunk != kernel.chunk) {
      passes.push_back({kernel.phase, kernel.chunk, k, 0});
    }
    ++passes.back().count;
  }
  return passes;
}

void renumber_gradients(Program& program, const std::vector<std::uint32_t>& order) {
  std::vector<Gradient> gradients;
  std::vector<std::uint32_t> new_number(order.size());
  for (std::uint32_t number = 0; number < order.size(); ++number) {
    gradients.push_back(std::move(program.gradients[order[number]]));
    new_number[order[number]] = number;
  }
  program.gradients = std::move(gradients);
  for (Kernel& kernel : program.kernels) {
    if (kernel.gradient != no_gradient) kernel.gradient = new_number[kernel.gradient];
  }
}

void number_gradients_by_parameter(Program& program) {
  std::vector<std::uint32_t> order(program.gradients.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto parameter = [&](std::uint32_t gradient) { return program.gradients[gradient].parameter; };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t one, std::uint32_t other) { return parameter(one) > parameter(other); });
  renumber_gradients(program, order);
}

void order_updates_by_parameter(Program& program) {
  const auto place = [&](const Kernel& kernel) {
    return std::pair(kernel.phase,
                     kernel.gradient == no_gradient ? no_gradient : program.gradients[kernel.gradient].parameter);
  };
  std::stable_sort(program.kernels.begin() + program.micro_batch_kernels, program.kernels.end(),
                   [&](const Kernel& one, const Kernel& other) { return place(one) < place(other); });
}

void leave_out_idle_time(Program& program) {
  for (Kernel& kernel : program.kernels) {
    kernel.duration = kernel.busy();
    kernel.idle = 0;
  }
}

}  // namespace hcclsim::models
