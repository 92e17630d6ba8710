#include "hccl/parallel/plan.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// Appends tasks to a role and returns their numbers.
class RoleBuilder {
 public:
  RoleBuilder() { role_.streams = {"compute", "communication", "update"}; }

  std::uint32_t add_kernel(const device::TimedKernel& kernel, std::uint32_t stream, std::vector<std::uint32_t> after) {
    return add({.kind = PlanTaskKind::kernel,
                .phase = kernel.phase,
                .stream = stream,
                .duration = kernel.duration,
                .name = kernel.name,
                .after = std::move(after)});
  }

  std::uint32_t add_collective(std::uint32_t collective, const std::string& name, std::uint32_t after) {
    return add({.kind = PlanTaskKind::collective,
                .stream = communication_stream,
                .collective = collective,
                .name = name,
                .after = {after}});
  }

  [[nodiscard]] Role finish() && { return std::move(role_); }

 private:
  std::uint32_t add(PlanTask task) {
    role_.tasks.push_back(std::move(task));
    return static_cast<std::uint32_t>(role_.tasks.size() - 1);
  }

  Role role_;
};

}  // namespace

Plan data_parallel_plan(const device::Workload& workload, const Communicator& world, std::span<const Segment> segments,
                        std::span<const std::shared_ptr<const Schedule>> schedules, bool hcom_parallel) {
  if (schedules.size() != segments.size()) {
    internal_error("{} schedules for {} segments", schedules.size(), segments.size());
  }
  Plan plan;
  plan.role_of.assign(world.ranks.size(), 0);
  plan.communicators = {world};

  RoleBuilder builder;
  std::vector<std::uint32_t> allreduces;  // task numbers
  const auto start_allreduce = [&](std::uint32_t after) {
    const std::size_t segment = allreduces.size();
    const std::string name = fmt::format("allreduce{}", segment + 1);
    plan.collectives.push_back({0, schedules[segment], name});
    allreduces.push_back(builder.add_collective(static_cast<std::uint32_t>(segment), name, after));
  };

  // A segment is ready with the last kernel that any of its gradients needs.
  std::vector<std::uint32_t> ready(segments.size(), 0);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    for (std::uint32_t g = segments[s].first; g <= segments[s].last; ++g) {
      ready[s] = std::max(ready[s], workload.gradients[g].kernel);
    }
  }
  const auto kernels = static_cast<std::uint32_t>(workload.kernels.size());
  for (std::uint32_t kernel = 0; kernel < kernels; ++kernel) {
    const std::uint32_t task = builder.add_kernel(workload.kernels[kernel], compute_stream, {});
    while (hcom_parallel && allreduces.size() < schedules.size() && ready[allreduces.size()] <= kernel) {
      start_allreduce(task);
    }
  }
  while (allreduces.size() < schedules.size()) start_allreduce(kernels - 1);

  const std::uint32_t updates = hcom_parallel ? update_stream : compute_stream;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::uint32_t allreduce = hcom_parallel ? allreduces[s] : allreduces.back();
    for (std::uint32_t g = segments[s].first; g <= segments[s].last; ++g) {
      for (const device::TimedKernel& update : workload.gradients[g].update) {
        builder.add_kernel(update, updates, {allreduce});
      }
    }
  }
  plan.roles.push_back(std::move(builder).finish());
  return plan;
}

}  // namespace hcclsim::hccl
