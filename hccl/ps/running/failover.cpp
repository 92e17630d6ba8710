#include "hccl/ps/running/failover.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {

void PsFailover::fail(const PsFailure& failure) {
  if (failure.node.role == PsRole::scheduler) {
    lose_scheduler();
    return;
  }
  const std::optional<std::uint32_t> found = members_.find(failure.node);
  if (!found.has_value() || !wire_.alive(*found)) {
    members_.note("scheduler", fmt::format("{} cannot fail: it does not run", to_string(failure.node)));
    return;
  }
  const std::uint32_t node = *found;
  members_.note(members_.id(node), "fails");
  wire_.kill(node);
  if (!members_.of(node).registered) return;  // the cluster waits for it until its own time-out
  const Seconds beat = options_.times.heartbeat;
  const Seconds born = members_.of(node).born;
  const Seconds last = born + std::floor((timeline_.now() - born) / beat) * beat;
  const Seconds look = (std::floor((last + options_.times.node_timeout) / beat) + 1) * beat;
  if_still_lost(node, std::max(timeline_.now(), look), [this, node] {
    if (members_.scheduler_alive()) detect(node);
  });
  if (failure.restart.has_value()) if_still_lost(node, *failure.restart, [this, node] { restart(node); });
}

void PsFailover::if_still_lost(std::uint32_t node, Seconds date, std::function<void()> then) {
  timeline_.always_at(date, [this, node, life = wire_.life(node), then = std::move(then)] {
    if (life == wire_.life(node) && !wire_.alive(node)) then();
  });
}

/// Nobody answers requests, takes registrations or watches nodes any more. Nodes that have registered end when they
/// miss it; others go on trying until the cluster's time-out.
void PsFailover::lose_scheduler() {
  if (!members_.scheduler_alive()) {
    members_.note("scheduler", "scheduler cannot fail: it does not run");
    return;
  }
  members_.lose_scheduler();
  members_.note("scheduler", "fails");
  if (!members_.any_registered()) return;
  timeline_.always_at(timeline_.now() + options_.times.scheduler_timeout, [this] {
    members_.end_job(fmt::format("the scheduler has not been heard of for {} s", options_.times.scheduler_timeout));
  });
}

void PsFailover::detect(std::uint32_t node) {
  const std::string id = members_.id(node);
  const PsMember& lost = members_.of(node);
  const bool was_starting = members_.state() == PsState::starting;
  members_.detect(node);
  members_.enter(PsState::node_timeout, fmt::format("no heartbeat of {} for {} s", id, options_.times.node_timeout));
  if (was_starting || scaling_.needs(node)) {
    members_.end_job(
        fmt::format("{} was lost while the cluster was {}", id, was_starting ? "starting" : "being scaled"));
  } else if (!recoverable(options_.recovery, lost.name.role, lost.rank.value())) {
    members_.end_job(fmt::format("{} is lost, and {}", id,
                                 options_.recovery.enabled
                                     ? "only a server of another rank than 0 can be recovered from copies"
                                     : "recovery is off"));
  } else {
    if_still_lost(node, timeline_.now() + options_.times.cluster_timeout, [this, id] {
      members_.end_job(fmt::format("{} has not come back within {} s", id, options_.times.cluster_timeout));
    });
  }
}

void PsFailover::restart(std::uint32_t node) {
  const std::string id = members_.id(node);
  const PsRole role = members_.of(node).name.role;
  const std::uint32_t rank = members_.of(node).rank.value();
  if (!members_.scheduler_alive()) {
    members_.note(id, "starts again, but there is no scheduler to register with");
    return;
  }
  if (!recoverable(options_.recovery, role, rank) || scaling_.needs(node) || members_.state() == PsState::starting) {
    members_.note(id, "starts again, but its registration is refused");
    return;
  }
  members_.revive(node);
  members_.note(id, fmt::format("starts again and gets rank {}", rank));
  if (role == PsRole::server) servers_.set_restoring(rank, true);
  if (options_.recovery.from == PsRecovery::From::copies) {
    restore(rank);
  } else if (members_.all_alive()) {
    go_back();
  }
}

/// Every piece comes from the worker with the newest copy.
void PsFailover::restore(std::uint32_t server) {
  const std::uint32_t node = members_.server(server);
  servers_.forget_work(server);
  const Countdown arrived([=, this] { restored(server); });
  for (const std::uint32_t piece : servers_.pieces_of(server)) {
    arrived.begin();
    timeline_.send(members_.worker(exchange_.newest_copy(piece)), node, servers_.piece(piece).bytes(),
                   PsTraffic::recovery, arrived);
  }
  timeline_.at(timeline_.now() + options_.costs.call, node, arrived);
}

void PsFailover::restored(std::uint32_t server) {
  servers_.set_restoring(server, false);
  exchange_.restore(server);
  members_.note(members_.id(members_.server(server)), "has its weights back from the workers' copies");
  if (members_.all_alive() && !servers_.any_restoring() && members_.scheduler_alive()) {
    members_.enter(scaling_.state(), "all nodes are there");
  }
  exchange_.go_on_with(server);
  steps_.initial_weights_restored(server);
  scaling_.look_at_barrier();
}

/// All go back to the last checkpoint, the weights of worker 0 at the begin of a step, which the workers send to the
/// servers as they sent the initial ones.
void PsFailover::go_back() {
  timeline_.go_back();
  servers_.go_back();
  const std::uint32_t step = steps_.go_back();
  members_.enter(scaling_.state(),
                 fmt::format("all nodes are there; all go back to the checkpoint before step {}", step));
  timeline_.log({.kind = PsLogEntry::Kind::rollback, .step = step});
  steps_.send_initial_weights();
}

}  // namespace hcclsim::hccl
