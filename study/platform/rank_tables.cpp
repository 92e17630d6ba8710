#include "study/platform/rank_tables.hpp"

#include "base/error.hpp"
#include "device/soc.hpp"
#include "hccl/comm/placement.hpp"
#include "sim/cluster.hpp"
#include "study/platform/on_platform.hpp"

namespace hcclsim::study {

std::vector<hccl::RankTableProblem> find_on_platform(const hccl::RankTable& table, const std::string& platform) {
  return on_cluster({.file = platform}, [&](sim::Cluster& cluster) {
    std::vector<hccl::RankTableProblem> problems = hccl::find_npus(table, cluster).problems;
    if (problems.empty()) {
      hccl::place_ranks(table, cluster);
      hccl::require_joined_as_in(table, cluster);
    }
    return problems;
  });
}

std::string rank_table_of_platform(const std::string& platform, std::optional<Rank> npus) {
  return on_cluster({.file = platform}, [&](sim::Cluster& cluster) {
    const Rank taken = npus.value_or(cluster.size());
    if (taken > cluster.size()) {
      bad_input("option", "--npus {}: {} has {} NPUs; accepted: 1 to {}", taken, platform, cluster.size(),
                cluster.size());
    }
    std::vector<std::string> notes;
    const device::Soc soc = device::resolve_soc(cluster, 0, notes);
    return write_rank_table(hccl::rank_table_of(cluster, soc.generation, taken));
  });
}

}  // namespace hcclsim::study
