#pragma once

#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "hccl/comm/rank_table.hpp"
#include "sim/cluster.hpp"
#include "sim/platform/generate.hpp"

/// From rank tables to clusters and back. The first server of a table is server 0 of the platform, and so on, because a
/// platform has no names such as server_id. A device_id is the NPU's device number within its server.
namespace hcclsim::hccl {

struct Placement {
  std::vector<Rank> npus;                  ///< number in the cluster of the NPU that each rank is
  std::vector<RankTableProblem> problems;  ///< servers and devices that the platform does not have
};

[[nodiscard]] Placement find_npus(const RankTable& table, const sim::Cluster& cluster);

/// Renumbers the NPUs of the cluster by the table: rank 0 of the table becomes rank 0 of the cluster; NPUs that are not
/// in the table come last. Throws Error(bad_input, "rank-table") if the platform lacks one.
void place_ranks(const RankTable& table, sim::Cluster& cluster);

/// To be called after place_ranks(). Throws Error(bad_input, "rank-table") if the platform connects servers over the
/// unified bus between which HCCL would use RoCE by this table, because they are in different super-pods or in none;
/// also if a super-pod of the table is split over several of the platform.
void require_joined_as_in(const RankTable& table, sim::Cluster& cluster);
/// Throws Error(bad_input, "rank-table") if a table has several servers and a device without device_ip: HCCL needs it
/// if RoCE connects the servers of a super-pod.
void require_roce_addresses(const RankTable& table);

/// The table of the first `npus` NPUs of a cluster, in the cluster's order: version 1.2 for A3, where servers that
/// reach each other without RoCE form a super-pod, otherwise version 1.0. Addresses are from the private range
/// 10.0.0.0/8. Throws Error(bad_input, "rank-table") if the servers have more devices than a table can have.
[[nodiscard]] RankTable rank_table_of(sim::Cluster& cluster, device::Generation generation, Rank npus);

/// Options of a platform on which the ranks of the table can be placed: the number of servers, their super-pods (A3;
/// without super_pod_list every server by itself), and, if `soc` is not given, the NPU type that the table's version
/// stands for, Ascend910A or a die of A3. Throws Error(bad_input, "rank-table") if such servers lack a device of the
/// table, or if the version is not that of the NPU type.
[[nodiscard]] sim::PlatformOptions platform_for(const RankTable& table, sim::PlatformOptions options);

}  // namespace hcclsim::hccl
