#include "hccl/parallel/plan.hpp"

#include <algorithm>
#include <optional>

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

/// Builds the role of data parallelism and the collectives that it takes part in.
class DataParallelBuilder {
 public:
  DataParallelBuilder(const device::Workload& workload, std::span<const Segment> segments,
                      const StepSchedules& schedules, bool hcom_parallel)
      : workload_(workload), segments_(segments), schedules_(schedules), hcom_parallel_(hcom_parallel) {
    const std::size_t count = schedules.allreduces.size();
    if (count != segments.size()) internal_error("{} schedules for {} segments", count, segments.size());
    if (workload.overflow_flag != (schedules.overflow_flag != nullptr)) {
      internal_error("the overflow flag and its schedule go together");
    }
  }

  void add_kernels_and_allreduces() {
    const auto kernels = static_cast<std::uint32_t>(workload_.kernels.size());
    for (std::uint32_t kernel = 0; kernel < kernels; ++kernel) {
      const std::uint32_t task = role_.add_kernel(workload_.kernels[kernel], compute_stream, {});
      while (hcom_parallel_ && allreduces_.size() < segments_.size() && ready(allreduces_.size()) <= kernel) {
        start_allreduce(task);
      }
    }
    while (allreduces_.size() < segments_.size()) start_allreduce(kernels - 1);
  }

  /// Checks of all gradients, then what updates wait for beside their allreduces.
  void add_checks() {
    std::uint32_t last_check = 0;
    for_each_gradient([&](const device::TimedGradient& gradient, std::uint32_t allreduce) {
      for (const device::TimedKernel& check : gradient.checks) {
        last_check = role_.add_kernel(check, stream_of_updates(), {allreduce});
      }
    });
    if (workload_.overflow_flag) {
      barrier_ = add_collective(schedules_.overflow_flag, std::string(overflow_flag_name), last_check);
    }
    // In the stream of the updates: it is before them without a dependency.
    if (workload_.clip_factor.has_value()) role_.add_kernel(*workload_.clip_factor, stream_of_updates(), {});
  }

  void add_updates() {
    for_each_gradient([&](const device::TimedGradient& gradient, std::uint32_t allreduce) {
      std::vector<std::uint32_t> after{allreduce};
      if (barrier_.has_value()) after.push_back(*barrier_);
      for (const device::TimedKernel& update : gradient.update) {
        role_.add_kernel(update, stream_of_updates(), after);
      }
    });
  }

  void finish(Plan& plan) && {
    plan.collectives = std::move(collectives_);
    plan.roles.push_back(std::move(role_).finish());
  }

 private:
  /// The kernel with which a segment is ready: the last that any of its gradients needs.
  [[nodiscard]] std::uint32_t ready(std::size_t segment) const {
    std::uint32_t kernel = 0;
    for (std::uint32_t g = segments_[segment].first; g <= segments_[segment].last; ++g) {
      kernel = std::max(kernel, workload_.gradients[g].kernel);
    }
    return kernel;
  }

  void start_allreduce(std::uint32_t after) {
    const std::size_t segment = allreduces_.size();
    allreduces_.push_back(
        add_collective(schedules_.allreduces[segment], fmt::format("allreduce{}", segment + 1), after));
  }

  std::uint32_t add_collective(const std::shared_ptr<const Schedule>& schedule, const std::string& name,
                               std::uint32_t after) {
    collectives_.push_back({0, schedule, name});
    return role_.add_collective(static_cast<std::uint32_t>(collectives_.size() - 1), name, after);
  }

  [[nodiscard]] std::uint32_t stream_of_updates() const { return hcom_parallel_ ? update_stream : compute_stream; }

  /// Calls visit(gradient, allreduce that it waits for) in production order.
  template <typename Visit>
  void for_each_gradient(Visit visit) const {
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const std::uint32_t allreduce = hcom_parallel_ ? allreduces_[s] : allreduces_.back();
      for (std::uint32_t g = segments_[s].first; g <= segments_[s].last; ++g) {
        visit(workload_.gradients[g], allreduce);
      }
    }
  }

  const device::Workload& workload_;
  std::span<const Segment> segments_;
  const StepSchedules& schedules_;
  bool hcom_parallel_;
  RoleBuilder role_;
  std::vector<PlannedCollective> collectives_;
  std::vector<std::uint32_t> allreduces_;  // task numbers
  std::optional<std::uint32_t> barrier_;   // task number
};

}  // namespace

Plan data_parallel_plan(const device::Workload& workload, const Communicator& world, std::span<const Segment> segments,
                        const StepSchedules& schedules, bool hcom_parallel) {
  Plan plan;
  plan.role_of.assign(world.ranks.size(), 0);
  plan.communicators = {world};
  DataParallelBuilder builder(workload, segments, schedules, hcom_parallel);
  builder.add_kernels_and_allreduces();
  builder.add_checks();
  builder.add_updates();
  std::move(builder).finish(plan);
  return plan;
}

}  // namespace hcclsim::hccl
