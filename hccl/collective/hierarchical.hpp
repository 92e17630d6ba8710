#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hccl/collective/builder.hpp"

/// Two levels: reduce-scatter inside every server, allreduce of each slice among the ranks that hold it (one per
/// server), all-gather inside every server. With m ranks per server and S servers the levels' times add up, the outer
/// one on n/m bytes:
///
///     time  RS(m, n) + AR(S, n/m) + AG(m, n)
///
/// Ranks are numbered server by server, with the same number on each.
namespace hcclsim::hccl {

enum class InnerAlgorithm : std::uint8_t { ring, multi_ring, mesh };
enum class OuterAlgorithm : std::uint8_t { ring, halving_doubling };

[[nodiscard]] std::string_view name_of(InnerAlgorithm algorithm);
[[nodiscard]] std::string_view name_of(OuterAlgorithm algorithm);

struct HierarchicalOptions {
  Rank ranks_per_server = 1;
  InnerAlgorithm inner = InnerAlgorithm::ring;
  OuterAlgorithm outer = OuterAlgorithm::ring;
  /// multi_ring: order of the server's ranks in each ring.
  std::vector<std::vector<Rank>> orders;
  bool inline_reduce_inner = true;
  bool inline_reduce_outer = false;
};

[[nodiscard]] Schedule hierarchical_allreduce(const Operation& operation, const HierarchicalOptions& options);

}  // namespace hcclsim::hccl
