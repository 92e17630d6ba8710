#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/program.hpp"

/// Programs made by hand, and what tests look up in one.
namespace hcclsim::test {

/// A kernel whose time is known.
inline models::Kernel timed_kernel(std::string name, models::Phase phase, Seconds duration,
                                   std::uint32_t gradient = models::no_gradient) {
  models::Kernel kernel;
  kernel.name = std::move(name);
  kernel.phase = phase;
  kernel.duration = duration;
  kernel.gradient = gradient;
  return kernel;
}

inline const models::Gradient& gradient_of(const models::Program& program, const std::string& name) {
  const auto found = std::ranges::find(program.gradients, name, &models::Gradient::name);
  if (found == program.gradients.end()) throw std::runtime_error("no gradient of " + name);
  return *found;
}

/// The checks or the update of a gradient, or what is there for all gradients (an empty name).
inline std::vector<models::Kernel> kernels_of(const models::Program& program, const std::string& gradient,
                                              models::Phase phase) {
  std::vector<models::Kernel> kernels;
  for (const models::Kernel& kernel : program.once_per_step()) {
    const bool of_all = kernel.gradient == models::no_gradient;
    const std::string name = of_all ? "" : program.gradients[kernel.gradient].name;
    if (kernel.phase == phase && name == gradient) kernels.push_back(kernel);
  }
  return kernels;
}

/// Time of all kernels.
inline Seconds compute_time(const models::Program& program) {
  return std::accumulate(program.kernels.begin(), program.kernels.end(), Seconds{0},
                         [](Seconds sum, const models::Kernel& kernel) { return sum + kernel.duration; });
}

}  // namespace hcclsim::test
