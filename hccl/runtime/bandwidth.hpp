#pragma once

#include "base/units.hpp"
#include "hccl/schedule/operation.hpp"

/// Bandwidths of a collective as tests of communication libraries report them. They do not depend on its algorithm.
namespace hcclsim::hccl {

/// Bytes per second; 0 if it took no time.
struct Bandwidth {
  double algbw = 0;  ///< payload / time
  /// algbw times the share of the payload that some rank has to send at least, so that it compares with the speed of
  /// links whatever the number of ranks n: 2(n−1)/n of an allreduce; (n−1)/n where the payload has a block for every
  /// rank, which keeps its own; else 1.
  double busbw = 0;
};

[[nodiscard]] Bandwidth bandwidth_of(const Operation& operation, Seconds time);

}  // namespace hcclsim::hccl
