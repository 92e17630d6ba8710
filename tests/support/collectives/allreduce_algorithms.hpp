#pragma once

#include <functional>
#include <map>
#include <string>

#include "hccl/collective/algorithm/builder.hpp"

namespace hcclsim::test {

/// A way of building an allreduce, and whether it can be built for a number of ranks.
struct AllReduce {
  std::function<hccl::Schedule(const hccl::Operation&)> build;
  std::function<bool(Rank ranks)> fits;
};

/// Every algorithm of hccl/collective with every option, by a name for people.
[[nodiscard]] std::map<std::string, AllReduce> allreduce_algorithms();

}  // namespace hcclsim::test
