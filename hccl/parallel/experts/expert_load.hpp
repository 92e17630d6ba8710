#pragma once

#include <cstdint>
#include <vector>

/// How many rows go to each expert where nothing is dropped. Routers do not use experts evenly: their shares fall as
/// 1 / (1 + s · j) from the first expert of an order on, with skew s, which is drawn anew for every layer (s = 1:
/// Zipf's law). All devices route alike.
namespace hcclsim::hccl {

struct ExpertSkew {
  double skew = 0;  ///< 0: even shares
  std::uint64_t seed = 1;
};

/// Rows of one device for each expert of a layer; their sum is `rows`. What does not divide goes to those with the
/// greatest remainders.
[[nodiscard]] std::vector<std::uint64_t> expert_load(const ExpertSkew& skew, std::uint32_t layer, std::uint32_t experts,
                                                     std::uint64_t rows);

}  // namespace hcclsim::hccl
