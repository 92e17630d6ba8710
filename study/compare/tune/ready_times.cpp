#include "study/compare/tune/ready_times.hpp"

#include <algorithm>
#include <numeric>

namespace hcclsim::study {
namespace {

bool is_forward(const models::Kernel& kernel) { return kernel.phase == models::Phase::forward; }

}  // namespace

Seconds forward_end(const models::Program& program) {
  Seconds end = 0;
  for (const models::Kernel& kernel : program.micro_batch()) {
    if (is_forward(kernel)) end += kernel.duration;
  }
  return end;
}

std::vector<Seconds> jittered_ready(const models::Program& program, const device::Skew& skew, Rank npus,
                                    std::uint32_t draw) {
  const auto kernels = static_cast<std::uint32_t>(program.micro_batch().size());
  std::vector<Seconds> latest(kernels, 0);
  for (Rank rank = 0; rank < npus; ++rank) {
    Seconds end = 0;
    for (std::uint32_t kernel = 0; kernel < kernels; ++kernel) {
      end += program.micro_batch()[kernel].slowed(skew.jitter(rank, draw, kernel) / skew.speed(rank));
      latest[kernel] = std::max(latest[kernel], end);
    }
  }
  std::vector<Seconds> ready;
  for (const models::Gradient& gradient : program.gradients) ready.push_back(latest.at(gradient.kernel));
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

std::vector<double> backward_flops(const models::Program& program) {
  std::vector<double> flops;
  std::uint32_t next = 0;
  for (const models::Gradient& gradient : program.gradients) {
    double sum = 0;
    for (; next <= gradient.kernel; ++next) {
      if (!is_forward(program.micro_batch()[next])) sum += program.micro_batch()[next].flops;
    }
    flops.push_back(sum);
  }
  return flops;
}

std::vector<Seconds> forward_times(const models::Program& program, std::span<const Seconds> ready) {
  const Seconds forward = forward_end(program);
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
