#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"

/// What a simulation tells of ranks that stood for others (rank_orbits.hpp).
namespace hcclsim::hccl {

/// Ranks that did the same at the same dates.
struct FoldedClass {
  Rank simulated = 0;         ///< in place of all of them
  std::vector<Rank> ranks{};  ///< ascending, that one included
};

/// "2 of 16 ranks simulated, the others do the same as these at the same dates: 0 for 0,2,..,14; 1 for 1,3,..,15". Of
/// many classes, and of many ranks in one, the first ones.
[[nodiscard]] std::string folded_text(std::span<const FoldedClass> classes, Rank ranks);

}  // namespace hcclsim::hccl
