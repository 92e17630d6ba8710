#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "hccl/collective/algorithm/ahc.hpp"
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

struct Build {
  hccl::Collective collective;
  hccl::Schedule (*build)(const hccl::Operation&, const hccl::UnevenGroups&);
};
constexpr std::array builds{Build{hccl::Collective::allreduce, hccl::ahc_allreduce},
                            Build{hccl::Collective::reduce_scatter, hccl::ahc_reduce_scatter},
                            Build{hccl::Collective::allgather, hccl::ahc_all_gather}};

}  // namespace

std::vector<CollectiveAlgorithm> ahc_algorithms() {
  using hccl::Collective;
  std::vector<CollectiveAlgorithm> all;
  const auto add = [&](const std::vector<Rank>& sizes, bool inlined) {
    const std::string name =
        fmt::format("ahc of groups of {}{}", fmt::join(sizes, ", "), inlined ? "" : ", reduced by a core");
    for (const auto& [collective, build] : builds) {
      if (collective == Collective::allgather && !inlined) continue;
      all.push_back({collective, name,
                     [=, build = build](const hccl::Operation& operation) {
                       return build(operation, {sizes_for(operation.ranks, sizes), inlined, inlined});
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
