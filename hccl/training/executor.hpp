#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/skew.hpp"
#include "hccl/parallel/plan.hpp"
#include "hccl/runtime/issue.hpp"
#include "hccl/runtime/rank_orbits.hpp"
#include "hccl/runtime/runtime.hpp"
#include "sim/trace.hpp"

/// Carries out a Plan for several iterations: a client of the runtime like any other program. Each rank enqueues its
/// next iteration when its last one has ended. Where it takes time to issue collectives, the host of a rank issues
/// those of an iteration one behind the other from its begin on, ahead of the device; a collective begins when it was
/// issued.
namespace hcclsim::hccl {

/// Gets the end of an iteration on every rank, and says whether iterations that no rank has begun are to follow.
using IterationEnd = std::function<bool(std::span<const Seconds> ends)>;

/// How the host of a rank of a schedule issues it; empty: in no time.
using IssueOf = std::function<Issue(const Schedule& schedule, Rank rank)>;

class PlanExecutor {
 public:
  /// The plan must outlive the executor. Throws Error(bad_input, "communicator") if a rank of a group does not take
  /// part or is in two groups of a family; start() and what follows, if a rank calls a collective of a family without a
  /// group of its, or has a message for a rank that does not take part. `on_end` is called for every iteration, in
  /// order, as soon as all ranks have ended it.
  /// With `orbits`, which must outlive it, only ranks that stand for others do anything; of groups that do the same,
  /// that of rank `own` is there.
  PlanExecutor(const Plan& plan, Runtime& runtime, sim::Trace& trace, device::Skew skew, std::uint32_t iterations,
               IssueOf issue = {}, IterationEnd on_end = {}, const RankOrbits* orbits = nullptr, Rank own = 0);

  /// Enqueues the first iteration of every rank; the rest follows while the runtime runs.
  void start();

 private:
  struct RankState {
    std::vector<StreamId> streams;
    std::vector<EventId> events;  // of the role's recorded tasks, then one per stream for the end of an iteration
    Seconds host = 0;             // date at which its host has issued all collectives so far
  };
  /// What the executor adds to a role.
  struct RoleState {
    std::vector<std::int32_t> event_of;  // of each task; −1 if no other stream waits for it
    KernelTable kernels;                 // of the program
    std::uint32_t events = 0;
    std::vector<bool> stream_used;
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
  void enqueue(Rank rank, std::uint32_t iteration, std::uint32_t task);
  void enqueue_kernels(Rank rank, StreamId stream, const KernelBlock& block, std::uint32_t ordinal,
                       const sim::TaskId& id);
  void enqueue_communication(Rank rank, StreamId stream, const PlanTask& task, const sim::TaskId& id);
  /// The stream waits until the host of `rank` has issued its next collective, in whose schedule it is `member`.
  Pace issue(Rank rank, StreamId stream, const Schedule& schedule, Rank member);
  void end_iteration(Rank rank, std::uint32_t iteration);
  void note_end(Rank rank, std::uint32_t iteration);

  const Plan& plan_;
  Runtime& runtime_;
  sim::Trace& trace_;
  device::Skew skew_;
  std::uint32_t iterations_;
  IssueOf issue_;
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
