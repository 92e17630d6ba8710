#pragma once

#include <cstdint>
#include <optional>

#include "base/units.hpp"

namespace hcclsim::study {

/// How NPUs fail and training starts again while a job of days goes on (study/run/goodput.hpp).
struct FailureSpec {
  Seconds npu_mtbf = 0;                             ///< mean time between failures of an NPU with its share of the rest
  std::optional<std::uint64_t> checkpoint_every{};  ///< steps; none: as daly_interval() has it
  BytesPerSecond checkpoint_bandwidth = 0;          ///< of what each rank writes
  Seconds restart = 0;                              ///< from a failure to the first step behind it
  Seconds length = 0;                               ///< time that the steps of the job take without any failure
  std::uint32_t runs = 0;                           ///< of the job, with random numbers of their own
  std::uint64_t seed = 1;
};

}  // namespace hcclsim::study
