#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.hpp"

/// How a fabric chooses among ways that cost the same.
namespace hcclsim::sim {

enum class RoutingKind : std::uint8_t {
  file,   ///< the route that SimGrid finds in the platform file
  dmodk,  ///< by the destination alone: every switch takes the way of number destination mod k of its k ways
  ecmp,   ///< by a hash of source, destination, queue pair and switch
  ideal,  ///< bytes are spread over all ways alike, so that only the number of links counts
};

struct Routing {
  RoutingKind kind = RoutingKind::file;
  std::uint64_t seed = 1;  ///< of the hash
  friend bool operator==(const Routing&, const Routing&) = default;
};

/// Parses "file", "dmodk", "ecmp", "ecmp:seed=3" or "ideal". Throws Error(bad_input, "routing").
[[nodiscard]] Routing parse_routing(std::string_view text);

/// As parse_routing takes it.
[[nodiscard]] std::string text_of(const Routing& routing);

/// The connection of two NPUs over RDMA: HCCL_RDMA_QPS_PER_CONNECTION and HCCL_MULTI_QP_THRESHOLD. A transfer takes as
/// many queue pairs as get the least number of bytes, and at least one.
struct QueuePairs {
  std::uint32_t count = 1;
  Bytes least_bytes = Bytes{512} << 10U;
};

}  // namespace hcclsim::sim
