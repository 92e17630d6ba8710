#include "hccl/parallel/data_parallel.hpp"

#include <numeric>
#include <utility>

namespace hcclsim::hccl {

std::vector<ReplicaGroups> all_replicas(Rank ranks, std::vector<Segment> segments) {
  return {{std::move(segments), {{world_communicator(ranks)}}}};
}

Plan data_parallel_plan(const std::shared_ptr<const models::Program>& program, const DataParallelOptions& options,
                        const ScheduleMaker& make_schedule) {
  Plan plan;
  plan.role_of.assign(options.ranks, 0);
  plan.families = options.families;
  std::vector<std::uint32_t> families(options.families.size());
  std::iota(families.begin(), families.end(), 0U);
  for (const ReplicaGroups& replicas : options.replicas) {
    const auto family = static_cast<std::uint32_t>(plan.families.size());
    RoleOptions role{.micro_batches = options.micro_batches,
                     .reductions = {},
                     .overlap = options.hcom_parallel,
                     .pad_segments = options.pad_segments,
                     .update_stream = options.update_stream,
                     .copies = {{.all = family, .shards = family}},
                     .families = families,
                     .everyone = family};
    for (const Segment& segment : replicas.segments) role.reductions.push_back({.segment = segment});
    plan.families.push_back(replicas.family);
    for (const Communicator& group : replicas.family.groups) {
      for (const Rank rank : group.ranks) plan.role_of[rank] = static_cast<std::uint32_t>(plan.roles.size());
    }
    RoleBuilder(program, std::move(role), make_schedule, plan).build();
  }
  return plan;
}

}  // namespace hcclsim::hccl
