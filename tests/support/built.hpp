#pragma once

#include "hccl/collective/algorithm.hpp"

namespace hcclsim::test {

/// An algorithm among all ranks; its transfers reduce on their way, or a core does.
template <hccl::Algorithm algorithm>
constexpr auto built = [](const hccl::Operation& operation, bool inline_reduce = true) {
  return hccl::build_algorithm(algorithm, operation, {.inline_reduce = inline_reduce});
};

}  // namespace hcclsim::test
