#include "study/ready_times.hpp"

#include <algorithm>
#include <numeric>

namespace hcclsim::study {
namespace {

bool is_forward(const device::TimedKernel& kernel) { return kernel.phase == models::Phase::forward; }

}  // namespace

Seconds forward_end(const device::Workload& workload) {
  Seconds end = 0;
  for (const device::TimedKernel& kernel : workload.kernels) {
    if (is_forward(kernel)) end += kernel.duration;
  }
  return end;
}

std::vector<Seconds> jittered_ready(const device::Workload& workload, const device::Skew& skew, Rank npus,
                                    std::uint32_t draw) {
  const auto kernels = static_cast<std::uint32_t>(workload.kernels.size());
  std::vector<Seconds> latest(kernels, 0);
  for (Rank rank = 0; rank < npus; ++rank) {
    Seconds end = 0;
    for (std::uint32_t kernel = 0; kernel < kernels; ++kernel) {
      end += workload.kernels[kernel].duration * skew.jitter(rank, draw, kernel) / skew.speed(rank);
      latest[kernel] = std::max(latest[kernel], end);
    }
  }
  std::vector<Seconds> ready;
  for (const device::TimedGradient& gradient : workload.gradients) ready.push_back(latest.at(gradient.kernel));
  return ready;
}

std::vector<Seconds> ready_in_proportion(std::span<const double> weights, Seconds begin, Seconds end) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(total > 0)) return {};
  std::vector<Seconds> ready;
  double sum = 0;
  for (const double weight : weights) {
    sum += weight;
    ready.push_back(begin + (end - begin) * (sum / total));
  }
  return ready;
}

std::vector<double> backward_flops(const device::Workload& workload) {
  std::vector<double> flops;
  std::uint32_t next = 0;
  for (const device::TimedGradient& gradient : workload.gradients) {
    double sum = 0;
    for (; next <= gradient.kernel; ++next) {
      if (!is_forward(workload.kernels[next])) sum += workload.kernels[next].flops;
    }
    flops.push_back(sum);
  }
  return flops;
}

std::vector<Seconds> forward_times(const device::Workload& workload, std::span<const Seconds> ready) {
  const Seconds forward = forward_end(workload);
  const Seconds backward = ready.back() - forward;
  if (forward <= 0 || backward <= 0) return {};
  std::vector<Seconds> times;
  Seconds before = forward;
  for (const Seconds date : ready) {
    times.push_back(std::max(date - before, 0.0) / backward * forward);
    before = std::max(before, date);
  }
  return times;
}

}  // namespace hcclsim::study
