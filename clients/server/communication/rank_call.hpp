#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "clients/server/communication/payload.hpp"
#include "clients/server/communicators/communicators.hpp"
#include "clients/server/devices/streams.hpp"
#include "hccl/collective/selection/selection.hpp"

namespace hcclsim::clients {

/// A call of a rank that is in order.
struct RankCall {
  /// Group, collective or its messages, source, destination, number.
  using Key = std::tuple<std::uint32_t, std::uint32_t, Rank, Rank, std::uint64_t>;

  ThreadId thread = 0;
  std::string function{};  ///< of HCCL
  std::shared_ptr<const CommunicatorGroup> group{};
  Rank rank = 0;
  ClientStream* stream = nullptr;
  hccl::Operation operation{};
  RankBuffers buffers{};
  std::vector<std::uint64_t> own_counts{};  ///< of HcclAlltoAllV: sent to each rank, then received from each
  bool zero_copy = false;
  Rank peer = 0;  ///< of a message
  bool receives = false;
  bool batch = false;
  Key key{};       ///< of what it belongs to, as Records have found out
  Rank place = 0;  ///< its rank there

  [[nodiscard]] bool is_message() const { return operation.collective == hccl::Collective::send_recv; }
  [[nodiscard]] Rank source() const { return receives ? peer : rank; }
  [[nodiscard]] Rank destination() const { return receives ? rank : peer; }
  /// HCCL starts nothing for it.
  [[nodiscard]] bool is_empty() const {
    return operation.collective != hccl::Collective::barrier && operation.payload() == 0;
  }
};

}  // namespace hcclsim::clients
