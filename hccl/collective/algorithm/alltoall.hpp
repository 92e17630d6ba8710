#pragma once

#include <functional>
#include <vector>

#include "hccl/collective/algorithm/builder.hpp"

/// What an alltoall among the members of a group moves; shared by the algorithms that do it.
namespace hcclsim::hccl {

struct Alltoall {
  /// What a rank reads from each member, itself included: a range in that member's memory.
  Range source;
  /// Where it puts what it has read from the member at a position.
  std::function<Range(Linear position)> destination;

  /// Copies the part that a rank has for itself.
  [[nodiscard]] Task own_copy() const { return copy(source, destination({0, 1, 0, 0})); }
};

/// From `input` to `output`, of all ranks.
[[nodiscard]] Alltoall alltoall_of_blocks(const Builder& builder, const Level& level);

/// How an algorithm does an alltoall: the strands of one stage.
using AlltoallStrands = std::vector<Strand> (*)(Builder&, const Level&, const Alltoall&);

}  // namespace hcclsim::hccl
