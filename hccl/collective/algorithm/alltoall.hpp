#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hccl/collective/algorithm/builder.hpp"

/// What an alltoall among the members of a group moves; shared by the algorithms that do it.
namespace hcclsim::hccl {

struct Alltoall {
  /// What a reader takes of each member, itself too, in that member's memory.
  Range source;
  /// Where it puts what it has from the member at a position.
  std::function<Range(Linear position)> destination;

  /// The part that a rank has for itself.
  [[nodiscard]] Task own_copy() const { return copy(source, destination({0, 1, 0, 0})); }
};

/// From `input` to `output`, of all ranks.
[[nodiscard]] Alltoall alltoall_of_blocks(const Builder& builder, const Level& level);

/// How an algorithm does it: strands of one stage.
using AlltoallStrands = std::vector<Strand> (*)(Builder&, const Level&, const Alltoall&);

/// The alltoall of that among all ranks.
[[nodiscard]] Schedule alltoall(const Operation& operation, const std::string& algorithm, AlltoallStrands strands);

}  // namespace hcclsim::hccl
