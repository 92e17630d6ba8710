#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "hccl/collective/algorithm/levels/ahc.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"

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
  using hccl::Collective;
  std::vector<CollectiveAlgorithm> all;
  const auto add = [&](const std::vector<Rank>& sizes, bool inlined) {
    const std::string name =
        fmt::format("ahc of groups of {}{}", fmt::join(sizes, ", "), inlined ? "" : ", reduced by a core");
    for (const Collective collective : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather}) {
      if (collective == Collective::allgather && !inlined) continue;
      all.push_back({collective, name,
                     [=](const hccl::Operation& operation) {
                       return hccl::ahc(operation, {sizes_for(operation.ranks, sizes), inlined, inlined});
                     },
                     [](Rank) { return true; }});
    }
  };
  add({3, 2}, true);
  add({3, 2}, false);
  add({4, 4, 1}, true);
  add({5}, false);
  add({1, 6}, true);
  add({2}, true);
  return all;
}

}  // namespace hcclsim::test
