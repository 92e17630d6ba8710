#include "hccl/collective/algorithm/alltoall.hpp"

#include <utility>

namespace hcclsim::hccl {

Alltoall alltoall_of_blocks(const Builder& builder, const Level& level) {
  return {input(builder.share(level, {0, 1, 0, 0})),
          [&builder, level](Linear position) { return output(builder.share(level, position)); }};
}

Schedule alltoall(const Operation& operation, const std::string& algorithm, AlltoallStrands strands) {
  Builder builder(operation, algorithm);
  const Level level{builder.add_group(Group::block(operation.ranks)), {}, true};
  std::vector<Strand> all = strands(builder, level, alltoall_of_blocks(builder, level));
  builder.add_stage(algorithm + " alltoall").strands = std::move(all);
  return std::move(builder).finish();
}

}  // namespace hcclsim::hccl
