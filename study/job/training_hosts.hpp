#pragma once

#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

#include "base/units.hpp"

namespace hcclsim::study {

/// Where the processes of a job train. Servers are numbers in the platform's order.
struct TrainingHosts {
  std::vector<Rank> npus{};              ///< of all workers in the order of their ranks: numbers in the cluster
  std::vector<std::uint32_t> workers{};  ///< server of each worker
  std::vector<std::uint32_t> parameter_servers{};  ///< server of each parameter server

  bool operator==(const TrainingHosts&) const = default;
  bool operator<(const TrainingHosts& other) const {
    return std::tie(npus, workers, parameter_servers) < std::tie(other.npus, other.workers, other.parameter_servers);
  }
};

/// The time of a training step on these hosts; of data parallelism where there are no parameter servers. Throws Error
/// as the simulation of a step does.
using StepTime = std::function<Seconds(const TrainingHosts&)>;

}  // namespace hcclsim::study
