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
  return {.name = std::move(name), .phase = kernel.phase, .duration = kernel_time(kernel, soc)};
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
                                  .update = timed_update(gradient.name, gradient.elements, soc, options)});
  }
  workload.hbm = account(step, options);
  const bool fp32_products = models::activation_type(options.amp) == DataType::fp32;
  if (fp32_products && soc.cube.fp32 == 1) {
    notes.push_back(
        fmt::format("{} has no fp32 cube: products run at the fp16 rate on inputs cast by the graph engine, "
                    "memory carries fp32",
                    soc.name));
  }
  return workload;
}

Seconds compute_time(const Workload& workload) {
  const auto sum = [](Seconds total, const TimedKernel& kernel) { return total + kernel.duration; };
  Seconds total = std::accumulate(workload.kernels.begin(), workload.kernels.end(), Seconds{0}, sum);
  for (const TimedGradient& gradient : workload.gradients) {
    total = std::accumulate(gradient.update.begin(), gradient.update.end(), total, sum);
  }
  return total;
}

}  // namespace hcclsim::device
