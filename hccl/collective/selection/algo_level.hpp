#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string>

#include "hccl/collective/algorithm.hpp"
#include "hccl/settings/config.hpp"

/// What HCCL_ALGO says about one level for a collective, as a value of Algorithm; shared by the choices of level 1 and
/// level 2.
namespace hcclsim::hccl {

/// The algorithm of a level, and why.
struct LevelChoice {
  /// The algorithm that `hierarchical` uses on the level; or pipeline, ahc or pairwise, which span all levels.
  Algorithm algorithm = Algorithm::ring;
  std::string rule{};
};

/// The algorithms of a level and their names in HCCL_ALGO.
struct NamedLevel {
  LevelAlgorithm setting;
  Algorithm algorithm;
};
inline constexpr std::array<NamedLevel, 8> named_levels{
    {{LevelAlgorithm::ring, Algorithm::ring},
     {LevelAlgorithm::halving_doubling, Algorithm::halving_doubling},
     {LevelAlgorithm::nhr, Algorithm::nhr},
     {LevelAlgorithm::nhr_v1, Algorithm::nhr_v1},
     {LevelAlgorithm::nb, Algorithm::nb},
     {LevelAlgorithm::ahc, Algorithm::ahc},
     {LevelAlgorithm::pipeline, Algorithm::pipeline},
     {LevelAlgorithm::pairwise, Algorithm::pairwise}}};

/// The algorithm works on all levels at once.
[[nodiscard]] bool spans_levels(Algorithm algorithm);

/// The name of the collective in HCCL_ALGO; nothing for collectives that the variable does not cover.
[[nodiscard]] std::optional<AlgoOperator> algo_operator_of(Collective collective);
/// The levels that HCCL_ALGO asks for; both automatic if it says nothing.
[[nodiscard]] AlgoLevels asked_levels(Collective collective, const HcclConfig& config);

/// The algorithm that HCCL_ALGO names for level 1 or 2. If it is not simulated for the collective, throws
/// Error(bad_input, "collective") that lists those that are.
[[nodiscard]] LevelChoice asked_for(Collective collective, LevelAlgorithm setting, int level);

/// The first of `algorithms` that `hierarchical` can use on its outermost level, or else the ring.
[[nodiscard]] LevelChoice first_of(Collective collective, std::initializer_list<Algorithm> algorithms,
                                   std::string rule);

}  // namespace hcclsim::hccl
