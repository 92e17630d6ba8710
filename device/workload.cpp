#include "device/workload.hpp"

#include <numeric>

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

TimedKernel timed(std::string name, const models::Kernel& kernel, const Soc& soc) {
  return {.name = std::move(name), .phase = kernel.phase, .duration = kernel_time(kernel, soc), .flops = kernel.flops};
}

std::vector<TimedKernel> timed_update(const std::string& gradient, std::uint64_t elements, const Soc& soc,
                                      const WorkloadOptions& options) {
  std::vector<TimedKernel> update;
  for (const models::Kernel& kernel :
       models::update_kernels(elements, options.optimizer, options.amp, options.gradient_type)) {
    update.push_back(timed(gradient + ":" + kernel.name, kernel, soc));
  }
  return update;
}

std::vector<TimedKernel> timed_checks(const std::string& gradient, std::uint64_t elements, const Soc& soc,
                                      const WorkloadOptions& options) {
  std::vector<TimedKernel> checks;
  for (const models::Kernel& kernel : models::check_kernels(elements, options.checks, options.gradient_type)) {
    checks.push_back(timed(gradient + ":" + kernel.name, kernel, soc));
  }
  return checks;
}

/// What stands between the checks of the gradients and their updates.
void add_barrier(Workload& workload, const Soc& soc, const WorkloadOptions& options) {
  const std::uint64_t gradients = workload.gradients.size();
  workload.overflow_flag = options.checks.overflow;
  if (options.checks.global_norm) {
    const models::Kernel kernel = models::clip_factor_kernel(gradients);
    workload.clip_factor = timed(kernel.name, kernel, soc);
  }
  workload.hbm.gradients += models::check_bytes(gradients, options.checks);
}

HbmAccount account(const models::Step& step, const WorkloadOptions& options) {
  HbmAccount hbm;
  hbm.weights = step.weights + step.weight_casts;
  const DataType produced = models::master_type(options.amp);
  for (const models::Gradient& gradient : step.gradients) {
    hbm.gradients += gradient.elements * size_of(gradient.dtype);
    // A cast leaves the gradient as it was produced: the update writes it back there.
    if (gradient.dtype != produced) hbm.gradients += gradient.elements * size_of(produced);
    hbm.optimizer_state += gradient.elements * models::state_bytes_per_element(options.optimizer, options.amp);
  }
  hbm.activations = models::peak_live_bytes(step);
  hbm.communication = options.communication_buffers;
  return hbm;
}

}  // namespace

Workload make_workload(const models::Graph& graph, const Soc& soc, const WorkloadOptions& options,
                       std::vector<std::string>& notes) {
  check_gradient_type(options.gradient_type, soc);
  const models::Step step =
      models::lower(graph, {.amp = options.amp, .fusion = options.fusion, .communication = options.gradient_type});
  Workload workload;
  workload.title = graph.title;
  workload.batch = graph.batch();
  workload.gradient_type = options.gradient_type;
  workload.kernels.reserve(step.kernels.size());
  for (const models::Kernel& kernel : step.kernels) workload.kernels.push_back(timed(kernel.name, kernel, soc));
  workload.gradients.reserve(step.gradients.size());
  for (const models::Gradient& gradient : step.gradients) {
    workload.gradients.push_back({.name = gradient.name,
                                  .parameter = gradient.parameter,
                                  .elements = gradient.elements,
                                  .kernel = gradient.kernel,
                                  .update = timed_update(gradient.name, gradient.elements, soc, options),
                                  .checks = timed_checks(gradient.name, gradient.elements, soc, options)});
  }
  workload.hbm = account(step, options);
  workload.activations = models::live_bytes(step);
  add_barrier(workload, soc, options);
  const bool fp32_products = models::activation_type(options.amp) == DataType::fp32;
  if (fp32_products && soc.cube.fp32 == 1) {
    notes.push_back(
        fmt::format("{} has no fp32 cube: products run at the fp16 rate on inputs cast by the graph engine, "
                    "memory carries fp32",
                    soc.name));
  }
  return workload;
}

Workload make_workload(const models::GradientProfile& profile, const Soc& soc, const WorkloadOptions& options,
                       std::vector<std::string>& notes) {
  check_gradient_type(options.gradient_type, soc);
  Workload workload;
  workload.title = profile.title;
  workload.gradient_type = options.gradient_type;
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
      workload.kernels.push_back({.name = fmt::format("until {}", gradient.name),
                                  .phase = models::Phase::backward,
                                  .duration = gradient.ready_s - ready});
      ready = gradient.ready_s;
    }
    const std::uint64_t elements = gradient.bytes / element;
    workload.gradients.push_back({.name = gradient.name,
                                  .parameter = count - 1 - index,
                                  .elements = elements,
                                  .kernel = static_cast<std::uint32_t>(workload.kernels.size() - 1),
                                  .update = timed_update(gradient.name, elements, soc, options),
                                  .checks = timed_checks(gradient.name, elements, soc, options)});
    workload.hbm.weights += elements * size_of(models::master_type(options.amp));
    workload.hbm.gradients += gradient.bytes;
    workload.hbm.optimizer_state += elements * models::state_bytes_per_element(options.optimizer, options.amp);
  }
  workload.hbm.communication = options.communication_buffers;
  add_barrier(workload, soc, options);
  notes.push_back(fmt::format(
      "{}: the profile tells neither where the forward pass ends nor the parameter order (taken as the reverse of "
      "production order); HBM is counted without activations and weight casts",
      profile.title));
  return workload;
}

Seconds compute_time(const Workload& workload) {
  const auto sum = [](Seconds total, const TimedKernel& kernel) { return total + kernel.duration; };
  Seconds total = std::accumulate(workload.kernels.begin(), workload.kernels.end(), Seconds{0}, sum);
  for (const TimedGradient& gradient : workload.gradients) {
    total = std::accumulate(gradient.checks.begin(), gradient.checks.end(), total, sum);
    total = std::accumulate(gradient.update.begin(), gradient.update.end(), total, sum);
  }
  if (workload.clip_factor.has_value()) total += workload.clip_factor->duration;
  return total;
}

}  // namespace hcclsim::device
