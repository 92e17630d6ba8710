#pragma once

#include <cstdint>
#include <functional>
#include <limits>
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

/// Times of the steps of a training, which are alike up to a step and again from there on: with gradient compression
/// those before its start are plain.
struct StepTimes {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  Seconds first = 0;                ///< of each step before change_at
  std::uint64_t change_at = never;  ///< counted from 0
  Seconds then = 0;                 ///< of each step from there on

  /// Of so many steps from one on.
  [[nodiscard]] Seconds of(std::uint64_t step, std::uint64_t steps) const;
  /// Steps that are done in a time from one on, with a fraction.
  [[nodiscard]] double done_in(std::uint64_t step, Seconds time) const;
};

/// The times of training steps on these hosts; of data parallelism where there are no parameter servers. Throws Error
/// as the simulation of a step does.
using StepTime = std::function<StepTimes(const TrainingHosts&)>;

}  // namespace hcclsim::study
