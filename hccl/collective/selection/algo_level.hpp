#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "hccl/collective/algorithm.hpp"
#include "hccl/settings/config.hpp"

/// What HCCL_ALGO says of one level for a collective, as an algorithm of this folder; shared by the choices of level 1
/// and level 2.
namespace hcclsim::hccl {

/// The algorithm of a level, and why.
struct LevelChoice {
  /// Of hierarchical on that level; or pipeline, ahc or pairwise, which span all levels.
  Algorithm algorithm = Algorithm::ring;
  std::string rule{};
};

/// The algorithm works on all levels at once.
[[nodiscard]] bool spans_levels(Algorithm algorithm);

/// What HCCL_ALGO calls the collective; nothing of those that it does not tell.
[[nodiscard]] std::optional<AlgoOperator> algo_operator_of(Collective collective);
/// Nothing said: both automatic.
[[nodiscard]] AlgoLevels asked_levels(Collective collective, const HcclConfig& config);

/// The algorithm that HCCL_ALGO names for level 1 or 2. Throws Error(bad_input, "collective") that lists what is
/// simulated if it is not.
[[nodiscard]] LevelChoice asked_for(Collective collective, LevelAlgorithm setting, int level);

/// The first of `algorithms` that hierarchical has on its outermost level, else the ring.
[[nodiscard]] LevelChoice first_of(Collective collective, std::initializer_list<Algorithm> algorithms,
                                   std::string rule);

}  // namespace hcclsim::hccl
