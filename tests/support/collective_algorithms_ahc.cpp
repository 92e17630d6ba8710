#include <fmt/format.h>

#include <algorithm>

#include "hccl/collective/ahc.hpp"
#include "tests/support/collective_algorithms.hpp"

namespace hcclsim::test {
namespace {

/// Servers of `sizes`, again and again, the last one with what is left.
std::vector<Rank> sizes_for(Rank ranks, const std::vector<Rank>& sizes) {
  std::vector<Rank> servers;
  for (Rank left = ranks; left > 0; left -= servers.back()) {
    servers.push_back(std::min(left, sizes[servers.size() % sizes.size()]));
  }
  return servers;
}

}  // namespace

std::vector<CollectiveAlgorithm> ahc_algorithms() {
  const auto of = [](const std::vector<Rank>& sizes, bool inlined) {
    return CollectiveAlgorithm{
        hccl::Collective::allreduce,
        fmt::format("ahc of servers of {}{}", fmt::join(sizes, ", "), inlined ? "" : ", reduced by a core"),
        [=](const hccl::Operation& operation) {
          return hccl::ahc_allreduce(operation, {sizes_for(operation.ranks, sizes), inlined, inlined});
        },
        [](Rank) { return true; }};
  };
  return {of({3, 2}, true), of({3, 2}, false), of({4, 4, 1}, true), of({5}, false), of({1, 6}, true), of({2}, true)};
}

}  // namespace hcclsim::test
