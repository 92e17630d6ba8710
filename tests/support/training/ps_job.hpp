#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hccl/ps/simulation.hpp"
#include "tests/support/training/programs.hpp"

/// Jobs with parameter servers, made by hand.
namespace hcclsim::test {

/// A forward pass of 1 ms, then for each gradient a kernel of the backward pass of 1 ms; number 0 is the last
/// parameter.
inline models::Program ps_program(const std::vector<std::uint64_t>& elements) {
  models::Program program;
  program.title = "hand-made";
  program.batch = 1;
  program.kernels.push_back(timed_kernel("forward", models::Phase::forward, 1e-3));
  for (std::uint32_t number = 0; number < elements.size(); ++number) {
    const auto parameter = static_cast<std::uint32_t>(elements.size() - 1 - number);
    program.kernels.push_back(timed_kernel("backward", models::Phase::backward, 1e-3));
    program.gradients.push_back({.name = "p" + std::to_string(parameter),
                                 .parameter = parameter,
                                 .elements = elements[parameter],
                                 .kernel = number + 1});
  }
  program.micro_batch_kernels = static_cast<std::uint32_t>(program.kernels.size());
  return program;
}

/// Workers on the first NPUs, servers behind them, all parameters of ps_program on servers. Messages and memory take no
/// time, so that what is left is links.
inline hccl::PsOptions ps_options(const std::vector<std::uint64_t>& elements, std::uint32_t workers,
                                  std::uint32_t servers, std::uint32_t steps) {
  hccl::PsOptions options;
  for (std::uint32_t worker = 0; worker < workers; ++worker) options.workers.push_back({.number = worker});
  for (std::uint32_t server = 0; server < servers; ++server) options.servers.push_back({.number = workers + server});
  for (std::uint32_t parameter = 0; parameter < elements.size(); ++parameter) {
    options.parameters.push_back({.name = "p" + std::to_string(parameter),
                                  .gradient = static_cast<std::uint32_t>(elements.size() - 1 - parameter),
                                  .elements = elements[parameter]});
  }
  options.steps = steps;
  options.costs = {.call = 0, .poll = 0, .server_bandwidth = 1e30, .state_tensors = 0};
  options.keep_log = true;
  return options;
}

}  // namespace hcclsim::test
