#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "base/units.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::hccl {

/// Where a queue of a collective stands that does not go on by itself.
struct Waiting {
  enum class For : std::uint8_t {
    notify,    ///< that another NPU sets
    transfer,  ///< whose last byte has not arrived
    work,      ///< a copy or reduction on shared NPUs that has not ended
    npu,       ///< its own, which is lost
  };

  static constexpr Rank nobody = std::numeric_limits<Rank>::max();

  For what = For::notify;
  Rank peer = nobody;  ///< NPU at the other end, or that sets the notify
  std::uint32_t queue = 0;
  std::uint32_t notify = 0;                                    ///< slot
  Bytes bytes = 0;                                             ///< of the transfer or work
  Seconds since = 0;                                           ///< it stands there
  bool sent = false;                                           ///< the notify has been set by the peer, and …
  Seconds posted = 0;                                          ///< … at this date, and …
  Seconds arrives = std::numeric_limits<Seconds>::infinity();  ///< … arrives then
  const sim::Route* route = nullptr;  ///< of the transfer, or of the notify; null within an NPU
  std::string step;                   ///< "stage 'reduce-scatter', round 2"
};

}  // namespace hcclsim::hccl
