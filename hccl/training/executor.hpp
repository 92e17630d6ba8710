#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/skew.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/runtime/collective/issue.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "hccl/runtime/runtime.hpp"
#include "sim/trace.hpp"

/// Carries out a Plan for several iterations: a client of the runtime like any other program. Each rank enqueues its
/// next iteration when its last one has ended, but for streams that run ahead (Role::ahead). Where it takes time to
/// issue kernels or collectives, the host of a rank issues those of an iteration one behind the other, in the order of
/// the Plan, from its begin on, ahead of the device; each begins when it was issued. So a host begins a step when it
/// knows the end of the last one, as a training loop does that looks at the loss of every step.
namespace hcclsim::hccl {

/// Gets the end of an iteration on every rank, and says whether iterations that no rank has begun are to follow.
using IterationEnd = std::function<bool(std::span<const Seconds> ends)>;

/// How the host of a rank of a schedule issues it; empty: in no time.
using IssueOf = std::function<Issue(const Schedule& schedule, Rank rank)>;

/// What takes time on the hosts.
struct HostTimes {
  IssueOf collective{};
  Seconds kernel = 0;                        ///< to issue one; 0: kernels are on the device when a step begins
  std::vector<double> samples_per_second{};  ///< that the data workers of each rank prepare; empty: any number
};

class PlanExecutor {
 public:
  /// The plan must outlive the executor. Throws Error(bad_input, "communicator") if a rank of a group does not take
  /// part or is in two groups of a family; start() and what follows, if a rank calls a collective of a family without a
  /// group of its, or has a message for a rank that does not take part. `on_end` is called for every iteration, in
  /// order, as soon as all ranks have ended it.
  /// With `orbits`, which must outlive it, only ranks that stand for others do anything; of groups that do the same,
  /// that of rank `own` is there.
  PlanExecutor(const Plan& plan, Runtime& runtime, sim::Trace& trace, device::Skew skew, std::uint32_t iterations,
               HostTimes host = {}, IterationEnd on_end = {}, const RankOrbits* orbits = nullptr, Rank own = 0);

  /// Enqueues the first iteration of every rank; the rest follows while the runtime runs.
  void start();

 private:
  struct RankState {
    std::vector<StreamId> streams;
    // Of the role's recorded tasks, then one per stream for the end of an iteration; if streams run ahead,
    // one for when an iteration begins to use what they bring.
    std::vector<EventId> events;
    Seconds host = 0;  // date at which its host has issued everything so far
  };
  /// What the executor adds to a role.
  struct RoleState {
    // Of each task; −1 if no other stream waits for it. Of one that runs ahead the first of several, used in turn.
    std::vector<std::int32_t> event_of;
    KernelTable kernels;  // of the program
    std::uint32_t events = 0;
    std::vector<bool> stream_used;

    /// The event of a task of an iteration.
    [[nodiscard]] std::uint32_t event(const Role& role, std::uint32_t task, std::uint32_t iteration) const {
      const auto first = static_cast<std::uint32_t>(event_of[task]);
      const std::uint32_t lead = role.lead(role.tasks[task].stream);
      return lead > 0 ? first + iteration % lead : first;
    }
  };

  /// An iteration that some ranks have ended.
  struct Ending {
    std::vector<Seconds> ends;
    Rank ranks = 0;  // that have
  };

  [[nodiscard]] bool is_simulated(Rank rank) const { return orbits_ == nullptr || orbits_->represents(rank); }
  void join_groups(const GroupFamily& family, Rank own);
  void prepare_role(const Role& role);
  void start_iteration(Rank rank, std::uint32_t iteration);
  /// The tasks that streams have of iterations to come, when `iteration` is enqueued; nothing if none runs ahead.
  void run_ahead(Rank rank, std::uint32_t iteration);
  /// … when training begins.
  void fill_ahead(Rank rank);
  void wait_for(Rank rank, std::uint32_t iteration, std::uint32_t task, std::uint32_t before);
  void enqueue(Rank rank, std::uint32_t iteration, std::uint32_t task);
  void enqueue_kernels(Rank rank, StreamId stream, const KernelBlock& block, std::uint32_t ordinal,
                       const sim::TaskId& id);
  /// True if the task is one of the host.
  bool enqueue_host_task(Rank rank, StreamId stream, const PlanTask& task, const sim::TaskId& id);
  void enqueue_communication(Rank rank, StreamId stream, const PlanTask& task, const sim::TaskId& id);
  /// The stream waits until the host of `rank` has issued its next collective, in whose schedule it is `member`.
  Pace issue(Rank rank, StreamId stream, const Schedule& schedule, Rank member, std::uint32_t name,
             const sim::TaskId& id);
  /// The host of `rank` issues a kernel; returns when it has.
  Seconds issue_kernel(Rank rank, std::uint32_t name, const sim::TaskId& id);
  void trace_issue(Rank rank, Seconds start, Seconds end, std::uint32_t name, const sim::TaskId& id);
  void end_iteration(Rank rank, std::uint32_t iteration);
  void note_end(Rank rank, std::uint32_t iteration);

  const Plan& plan_;
  Runtime& runtime_;
  sim::Trace& trace_;
  device::Skew skew_;
  std::uint32_t iterations_;
  HostTimes host_;
  IterationEnd on_end_;
  const RankOrbits* orbits_;
  Rank simulated_;              // ranks
  std::deque<Ending> endings_;  // from iteration ended_ on
  std::uint32_t ended_ = 0;     // iterations that all ranks have ended
  struct Membership {
    std::uint32_t group = 0;
    Rank rank = 0;  // in the group: of the member whose part it does
    CommunicatorId communicator{};
  };
  std::vector<std::vector<std::optional<Membership>>> memberships_;  // of each family, of each rank
  std::vector<std::uint32_t> collective_names_;                      // in the trace
  std::vector<std::uint32_t> message_names_;
  std::vector<RoleState> roles_;
  std::vector<RankState> ranks_;
  std::vector<bool> waited_;  // scratch of start_iteration: stream × event, waits already enqueued
};

}  // namespace hcclsim::hccl
