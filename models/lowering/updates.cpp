#include "models/lowering/updates.hpp"

#include <algorithm>
#include <iterator>

namespace hcclsim::models {
namespace {

/// The flag of the overflow check and every partial sum are one number of 4 bytes.
constexpr Bytes scalar_bytes = 4;

Kernel check_kernel(std::string_view name, DataType type, std::uint64_t operations, Bytes read) {
  return vector_kernel(name, Phase::check, type, operations, read, scalar_bytes);
}

/// The kernels that read a reduced gradient, each of them once: the overflow check (one comparison per element, raises
/// a flag), then the norm (multiplies and adds in fp32, leaves a partial sum).
std::vector<Kernel> check_kernels(const Gradient& gradient, std::uint64_t elements, const GradientChecks& checks) {
  const Bytes tensor = elements * size_of(gradient.reduced_type());
  std::vector<Kernel> kernels;
  if (checks.overflow) kernels.push_back(check_kernel("overflow_check", gradient.reduced_type(), elements, tensor));
  if (checks.global_norm) kernels.push_back(check_kernel("norm", DataType::fp32, 2 * elements, tensor));
  return kernels;
}

/// What was cast to be reduced is cast back before anything reads it.
void add_cast_back(std::vector<Kernel>& kernels, Phase phase, const Gradient& gradient, std::uint64_t elements) {
  if (!gradient.cast_back.has_value()) return;
  kernels.push_back(vector_kernel("cast_back", phase, gradient.dtype, elements, elements * size_of(gradient.dtype),
                                  elements * size_of(*gradient.cast_back)));
}

bool is_on_host(const Program& program, std::uint32_t gradient) {
  return !program.parameters.empty() && program.parameters[program.gradients[gradient].parameter].on_host;
}

/// Adds kernels for one gradient.
void append(Program& program, std::uint32_t gradient, std::vector<Kernel> kernels) {
  for (Kernel& kernel : kernels) {
    if (is_on_host(program, gradient)) kernel.kind = KernelClass::host;
    kernel.name = program.gradients[gradient].name + ":" + kernel.name;
    kernel.gradient = gradient;
    program.kernels.push_back(std::move(kernel));
  }
}

/// Elements of a gradient that this rank checks and applies.
std::uint64_t updated_elements(const Program& program, std::uint32_t gradient) {
  const Gradient& whole = program.gradients[gradient];
  return program.parameters.empty() ? whole.elements : program.parameters[whole.parameter].shard();
}

/// What several ranks share is cast here: the others gather it as kernels read it.
void add_cast(std::vector<Kernel>& kernels, const Program& program, std::uint32_t gradient, DataType weight) {
  if (program.parameters.empty()) return;
  const ParameterShare& share = program.parameters[program.gradients[gradient].parameter];
  if (share.shards == 1 || share.used_as == weight) return;
  kernels.push_back(vector_kernel("cast", Phase::update, weight, share.shard(), share.shard() * size_of(weight),
                                  share.shard() * size_of(share.used_as)));
}

}  // namespace

void add_updates(Program& program, const UpdateOptions& options) {
  const auto count = static_cast<std::uint32_t>(program.gradients.size());
  program.overflow_flag = options.checks.overflow;
  const bool checks = options.checks.any();
  for (std::uint32_t g = 0; g < count; ++g) {
    std::vector<Kernel> kernels;
    if (checks) add_cast_back(kernels, Phase::check, program.gradients[g], updated_elements(program, g));
    std::ranges::move(check_kernels(program.gradients[g], updated_elements(program, g), options.checks),
                      std::back_inserter(kernels));
    append(program, g, std::move(kernels));
  }
  if (options.checks.global_norm) {  // the factor of the clip, from the partial sums
    program.kernels.push_back(check_kernel("clip_factor", DataType::fp32, count, count * scalar_bytes));
    program.gradient_bytes += (count + 1) * scalar_bytes;
  }
  if (options.checks.overflow) program.gradient_bytes += scalar_bytes;
  for (std::uint32_t g = 0; g < count; ++g) {
    const Gradient& gradient = program.gradients[g];
    const std::uint64_t elements = updated_elements(program, g);
    std::vector<Kernel> kernels;
    if (!checks) add_cast_back(kernels, Phase::update, gradient, elements);
    const bool alone = !program.parameters.empty() && program.parameters[gradient.parameter].alone;
    const Bytes tensor = elements * size_of(gradient.reduced_type());
    for (const auto& [name, wanted] :
         {std::pair{"mean", options.mean && !alone}, std::pair{"mean_again", options.mean_again}}) {
      if (!wanted) continue;
      kernels.push_back(vector_kernel(name, Phase::update, gradient.reduced_type(), elements, tensor, tensor));
    }
    std::ranges::move(update_kernels(elements, options.optimizer, options.precision, gradient.reduced_type()),
                      std::back_inserter(kernels));
    add_cast(kernels, program, g, options.precision.weight);
    if (options.clear) {
      const Bytes bytes = gradient.elements * size_of(gradient.dtype);
      kernels.push_back(vector_kernel("clear", Phase::update, gradient.dtype, gradient.elements, 0, bytes));
    }
    append(program, g, std::move(kernels));
    (is_on_host(program, g) ? program.host : program.optimizer_state) +=
        elements * state_bytes_per_element(options.optimizer, options.precision);
  }
}

}  // namespace hcclsim::models
