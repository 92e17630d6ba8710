#include "models/lowering/gradient_checks.hpp"

#include <string>

namespace hcclsim::models {
namespace {

/// The flag and every partial sum are one number of 4 bytes.
constexpr Bytes scalar_bytes = 4;

Kernel vector_kernel(std::string_view name, DataType type, std::uint64_t operations, Bytes read) {
  return {.name = std::string(name),
          .phase = Phase::check,
          .kind = KernelClass::vector,
          .dtype = type,
          .cube = {},
          .flops = static_cast<Flops>(operations),
          .vector_elements = operations,
          .read = read,
          .written = scalar_bytes};
}

}  // namespace

std::vector<Kernel> check_kernels(std::uint64_t elements, const GradientChecks& checks, DataType type) {
  const Bytes tensor = elements * size_of(type);
  std::vector<Kernel> kernels;
  if (checks.overflow) kernels.push_back(vector_kernel("overflow_check", type, elements, tensor));
  if (checks.global_norm) kernels.push_back(vector_kernel("norm", DataType::fp32, 2 * elements, tensor));
  return kernels;
}

Kernel clip_factor_kernel(std::uint64_t gradients) {
  return vector_kernel("clip_factor", DataType::fp32, gradients, gradients * scalar_bytes);
}

Bytes check_bytes(std::uint64_t gradients, const GradientChecks& checks) {
  return (checks.overflow ? scalar_bytes : 0) + (checks.global_norm ? (gradients + 1) * scalar_bytes : 0);
}

}  // namespace hcclsim::models
