#include "device/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "device/kernel_cost.hpp"

namespace hcclsim::device {
namespace {

void check_gradient_type(DataType type, const Soc& soc) {
  if (type == DataType::bf16 && soc.cube.bf16 == 0) {
    bad_input("dtype", "{} has no bf16; communicate gradients as fp32 or fp16", soc.name);
  }
  if (type == DataType::fp32 || type == DataType::fp16 || type == DataType::bf16) return;
  bad_input("dtype", "gradients cannot be communicated as {}; accepted: fp32, fp16, bf16", name_of(type));
}

models::UpdateOptions update_options(const ProgramOptions& options) {
  return {.precision = options.precision,
          .optimizer = options.optimizer,
          .checks = options.checks,
          .mean = options.gradients_mean,
          .mean_again = options.mean_again,
          .clear = options.accumulate};
}

/// All that the time of a product depends on.
auto product_key(const models::Kernel& kernel) {
  const auto of_work = [](const models::CubeWork& work) {
    return std::tuple(work.m, work.n, work.k, work.groups, work.split_k, work.sums_out);
  };
  const models::CubeWork second = kernel.second_cube == nullptr ? models::CubeWork{} : *kernel.second_cube;
  return std::tuple(of_work(kernel.cube), of_work(second), kernel.dtype, kernel.vector_elements, kernel.read,
                    kernel.written);
}

/// Gives the kernels from number `first` on their times. Layers repeat each other's products, whose times take longest
/// to find.
void add_times(models::Program& program, const Soc& soc, std::size_t first) {
  std::map<decltype(product_key(program.kernels.front())), Seconds> products;
  for (std::size_t i = first; i < program.kernels.size(); ++i) {
    models::Kernel& kernel = program.kernels[i];
    if (kernel.kind == models::KernelClass::communication || kernel.duration > 0) continue;
    if (kernel.kind != models::KernelClass::matmul) {
      kernel.duration = kernel_time(kernel, soc);
      continue;
    }
    const auto [product, is_new] = products.try_emplace(product_key(kernel));
    if (is_new) product->second = kernel_time(kernel, soc);
    kernel.duration = product->second;
  }
}

}  // namespace

models::Program make_program(const models::Graph& graph, const Soc& soc, const ProgramOptions& options,
                             std::vector<std::string>& notes) {
  check_gradient_type(options.gradient_type, soc);
  models::Program program = models::lower(graph, {.precision = options.precision,
                                                  .fusion = options.fusion,
                                                  .fused_attention = fuses_attention(soc, options),
                                                  .communication = options.gradient_type,
                                                  .sync = options.gradient_sync,
                                                  .fp32_sums = options.fp32_sums,
                                                  .accumulate = options.accumulate,
                                                  .forward_only = options.forward_only,
                                                  .sharding = options.sharding});
  if (!options.forward_only) models::add_updates(program, update_options(options));
  add_times(program, soc, 0);
  const bool fp32_products = options.precision.compute == DataType::fp32;
  if (fp32_products && soc.cube.fp32 == 1) {
    notes.push_back(
        fmt::format("{} has no fp32 cube: products run at the fp16 rate on inputs cast by the graph engine, "
                    "memory carries fp32",
                    soc.name));
  }
  return program;
}

models::Program make_program(const models::GradientProfile& profile, const Soc& soc, const ProgramOptions& options,
                             std::vector<std::string>& notes) {
  check_gradient_type(options.gradient_type, soc);
  models::Program program;
  program.title = profile.title;
  const Bytes element = size_of(options.gradient_type);
  const auto count = static_cast<std::uint32_t>(profile.gradients.size());
  Seconds ready = 0;
  for (std::uint32_t index = 0; index < count; ++index) {
    const models::ProfiledGradient& gradient = profile.gradients[index];
    if (gradient.bytes % element != 0) {
      bad_input("profile", "{}:{}: {} has {} bytes, not a multiple of an element of {} ({} bytes)", profile.file,
                gradient.line, gradient.name, gradient.bytes, name_of(options.gradient_type), element);
    }
    if (index == 0 || gradient.ready_s > ready) {
      models::Kernel& kernel = program.kernels.emplace_back();
      kernel.name = fmt::format("until {}", gradient.name);
      kernel.phase = models::Phase::backward;
      kernel.duration = gradient.ready_s - ready;
      ready = gradient.ready_s;
    }
    const std::uint64_t elements = gradient.bytes / element;
    program.gradients.push_back({.name = gradient.name,
                                 .parameter = count - 1 - index,
                                 .elements = elements,
                                 .dtype = options.gradient_type,
                                 .kernel = static_cast<std::uint32_t>(program.kernels.size() - 1)});
    program.weights += elements * size_of(options.precision.weight);
    program.gradient_bytes += gradient.bytes;
  }
  program.micro_batch_kernels = static_cast<std::uint32_t>(program.kernels.size());
  models::add_updates(program, update_options(options));
  add_times(program, soc, program.micro_batch_kernels);
  notes.push_back(fmt::format(
      "{}: the profile tells neither where the forward pass ends nor the parameter order (taken as the reverse of "
      "production order); HBM is counted without activations and weight casts",
      profile.title));
  return program;
}

HbmAccount hbm_account(const models::Program& program, Bytes communication_buffers) {
  return {.weights = program.weights + program.weight_casts,
          .gradients = program.gradient_bytes,
          .optimizer_state = program.optimizer_state,
          .activations = models::peak_live_bytes(program),
          .gathered = program.gathered,
          .communication = communication_buffers,
          .host = program.host};
}

}  // namespace hcclsim::device
