#include "hccl/collective/algorithm/alltoall.hpp"

namespace hcclsim::hccl {

Alltoall alltoall_of_blocks(const Builder& builder, const Level& level) {
  return {input(builder.share(level, {0, 1, 0, 0})),
          [&builder, level](Linear position) { return output(builder.share(level, position)); }};
}

}  // namespace hcclsim::hccl
