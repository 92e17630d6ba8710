#include "hccl/check/matching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "hccl/check/access_history.hpp"
#include "hccl/check/program/task_run.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t none = TaskRun<NoObserver>::none;

/// Calls visit(id, task) for every post and wait.
template <typename Visit>
void visit_notifies(const TaskProgram& program, const Visit& visit) {
  visit_tasks(program, [&](const TaskId& id, const ProgramPart& /*part*/, const ProgramTask& task) {
    if (is_notify(task.kind)) visit(id, task);
  });
}

std::size_t slot_of(const TaskProgram& program, const TaskId& id, const ProgramTask& task) {
  const Rank owner = is_post(task.kind) ? task.peer : id.rank;
  return std::size_t{program.representative(owner)} * program.notifies + task.value;
}

struct Uses {
  std::vector<TaskId> posts;
  std::vector<TaskId> waits;
};

/// All posts and waits of the given slots.
std::map<std::size_t, Uses> uses_of(const TaskProgram& program, const std::vector<std::size_t>& slots) {
  std::map<std::size_t, Uses> uses;
  for (const std::size_t slot : slots) uses[slot];
  if (slots.empty()) return uses;
  visit_notifies(program, [&](const TaskId& id, const ProgramTask& task) {
    const auto found = uses.find(slot_of(program, id, task));
    if (found == uses.end()) return;
    (is_post(task.kind) ? found->second.posts : found->second.waits).push_back(id);
  });
  return uses;
}

void report_count(const TaskProgram& program, std::size_t slot, const Uses& uses, Findings& findings) {
  const auto owner = static_cast<Rank>(slot / program.notifies);
  const bool posts_missing = uses.posts.size() < uses.waits.size();
  const TaskId odd = posts_missing ? uses.waits.back() : uses.posts.back();
  findings.keep({posts_missing ? "wait-without-post" : "post-without-wait",
                 fmt::format("notify {} of rank {} is posted {} times and waited for {} times; {} has no {}",
                             slot % program.notifies, owner, uses.posts.size(), uses.waits.size(),
                             program.describe(odd), posts_missing ? "post" : "wait"),
                 {owner},
                 {odd}});
}

/// For a run that has stopped: which queues each stopped queue waits for.
class WaitGraph {
 public:
  struct Edge {
    std::uint32_t to = 0;  ///< chain
    bool by_host = false;  ///< its task was not issued, since `to` is full
  };

  WaitGraph(const TaskProgram& program, const TaskRun<NoObserver>& run) : program_(program), run_(run) {
    find_stopped();
    find_posts();
    for (const std::uint32_t chain : stopped_) edges_[chain] = edges_from(chain);
  }

  /// The shortest cycle, or of several the first found; empty if there is none.
  [[nodiscard]] std::vector<std::uint32_t> shortest_cycle() const {
    std::vector<std::uint32_t> shortest;
    for (const std::uint32_t start : stopped_) {
      std::vector<std::uint32_t> cycle = cycle_through(start, shortest.size());
      if (!cycle.empty()) shortest = std::move(cycle);
      if (shortest.size() == 1) break;
    }
    return shortest;
  }

  [[nodiscard]] TaskId stopped_at(std::uint32_t chain) const {
    const auto& state = run_.chain(chain);
    return program_.task_id(chain, state.part->number + state.done);
  }
  [[nodiscard]] const std::vector<std::uint32_t>& stopped() const { return stopped_; }
  [[nodiscard]] bool blocked_by_host(std::uint32_t from) const {
    const std::vector<Edge>& edges = edges_.at(from);
    return !edges.empty() && edges.front().by_host;
  }

 private:
  void find_stopped() {
    for (std::uint32_t chain = 0; chain < program_.chains(); ++chain) {
      if (run_.chain(chain).part != nullptr) stopped_.push_back(chain);
    }
  }

  /// Finds, for every notify that is waited for, the next post that has not been done.
  void find_posts() {
    for (const std::uint32_t chain : stopped_) {
      const ProgramTask& task = task_of(chain);
      if (is_wait(task.kind)) post_of_[slot_of(program_, stopped_at(chain), task)] = {};
    }
    visit_notifies(program_, [&](const TaskId& id, const ProgramTask& task) {
      if (!is_post(task.kind) || is_done(id)) return;
      const auto found = post_of_.find(slot_of(program_, id, task));
      if (found != post_of_.end()) found->second.push_back(id);
    });
  }

  [[nodiscard]] const ProgramTask& task_of(std::uint32_t chain) const {
    const auto& state = run_.chain(chain);
    return program_.tasks[state.part->first + state.done];
  }

  [[nodiscard]] bool is_done(const TaskId& id) const {
    const auto& state = run_.chain(program_.chain(id.rank, id.queue));
    return id.number < (state.part == nullptr ? state.done : state.part->number + state.done);
  }

  [[nodiscard]] std::vector<Edge> edges_from(std::uint32_t chain) const {
    const ProgramTask& task = task_of(chain);
    const auto waited = is_wait(task.kind) ? post_of_.find(slot_of(program_, stopped_at(chain), task)) : post_of_.end();
    const bool issued =
        run_.full_queue(program_.rank_of(chain)) == none || stopped_at(chain).number < run_.chain(chain).issued;
    if (!issued) return {{run_.full_queue(program_.rank_of(chain)), true}};
    std::vector<Edge> edges;
    if (waited == post_of_.end()) return edges;
    for (const TaskId& post : waited->second) {
      // A post in the current stage waits for its queue; one in a later stage for all queues of its rank.
      const std::uint32_t poster = program_.chain(post.rank, post.queue);
      const auto* part = run_.chain(poster).part;
      if (part != nullptr && post.number < part->number + part->count) {
        edges.push_back({poster, false});
        continue;
      }
      for (std::uint32_t queue = 0; queue < program_.queues; ++queue) {
        const std::uint32_t other = program_.chain(post.rank, queue);
        if (run_.chain(other).part != nullptr) edges.push_back({other, false});
      }
    }
    return edges;
  }

  /// Shortest cycle through `start` with fewer than `limit` chains (0: no limit), by breadth-first search.
  [[nodiscard]] std::vector<std::uint32_t> cycle_through(std::uint32_t start, std::size_t limit) const {
    std::map<std::uint32_t, std::uint32_t> reached_from;
    std::vector<std::uint32_t> front{start};
    for (std::size_t length = 1; !front.empty() && (limit == 0 || length < limit); ++length) {
      std::vector<std::uint32_t> next;
      for (const std::uint32_t chain : front) {
        for (const Edge& edge : edges_.at(chain)) {
          if (edge.to == start) return path(reached_from, start, chain);
          if (reached_from.try_emplace(edge.to, chain).second) next.push_back(edge.to);
        }
      }
      front.swap(next);
    }
    return {};
  }

  static std::vector<std::uint32_t> path(const std::map<std::uint32_t, std::uint32_t>& reached_from,
                                         std::uint32_t start, std::uint32_t last) {
    std::vector<std::uint32_t> cycle;
    for (std::uint32_t chain = last; chain != start; chain = reached_from.at(chain)) cycle.push_back(chain);
    cycle.push_back(start);
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }

  const TaskProgram& program_;
  const TaskRun<NoObserver>& run_;
  std::vector<std::uint32_t> stopped_;
  std::map<std::size_t, std::vector<TaskId>> post_of_;  // by slot
  std::map<std::uint32_t, std::vector<Edge>> edges_;    // by chain
};

void report_deadlock(const TaskProgram& program, const TaskRun<NoObserver>& run, Findings& findings) {
  if (!findings.wanted()) return;
  const WaitGraph graph(program, run);
  const std::vector<std::uint32_t> cycle = graph.shortest_cycle();
  if (cycle.empty()) internal_error("{} queues stop without a cycle", graph.stopped().size());
  Finding finding{"deadlock",
                  fmt::format("{} queues stop; shortest cycle of {}: ", graph.stopped().size(), cycle.size())};
  for (const std::uint32_t chain : cycle) {
    const TaskId id = graph.stopped_at(chain);
    finding.message += program.describe(id);
    finding.message += graph.blocked_by_host(chain) ? " is not issued until there is room in the queue of "
                                                    : " waits for what comes after ";
    finding.ranks.push_back(id.rank);
    finding.tasks.push_back(id);
  }
  finding.message += "the first again";
  findings.keep(std::move(finding));
}

}  // namespace

void check_matching(const TaskProgram& program, Findings& findings) {
  struct Slot {
    std::int64_t balance = 0;  // posts less waits
    std::optional<bool> local{};
  };
  std::vector<Slot> slots(std::size_t{program.unrolled()} * program.notifies);
  visit_notifies(program, [&](const TaskId& id, const ProgramTask& task) {
    Slot& slot = slots[slot_of(program, id, task)];
    const bool local = is_local_notify(task.kind);
    if (slot.local.value_or(local) != local && findings.wanted()) {
      findings.keep({"mixed-notify",
                     fmt::format("{}: the notify is {} here and {} elsewhere", program.describe(id),
                                 local ? "local" : "of two ranks", local ? "of two ranks" : "local"),
                     {id.rank},
                     {id}});
    }
    slot.local = local;
    slot.balance += is_post(task.kind) ? 1 : -1;
  });
  std::vector<std::size_t> odd;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot].balance != 0 && findings.wanted()) odd.push_back(slot);
  }
  for (const auto& [slot, uses] : uses_of(program, odd)) report_count(program, slot, uses, findings);
}

void check_progress(const TaskProgram& program, const CheckOptions& options, Findings& matching, Findings& deadlock) {
  NoObserver observer;
  TaskRun<NoObserver> run(program, observer, options.queue_depth);
  const RunEnd end = run.run();
  if (end == RunEnd::deadlock) report_deadlock(program, run, deadlock);
  const bool stopped = end == RunEnd::overwritten || end == RunEnd::two_waiters;
  if (!stopped || !matching.wanted()) return;
  if (end == RunEnd::two_waiters) {
    matching.keep(two_waiters_finding(program, run.first(), run.second()));
    return;
  }
  matching.keep(
      {"notify-overwritten",
       fmt::format("{} may come before the wait for {}", program.describe(run.second()), program.describe(run.first())),
       {program.task(run.second()).peer},
       {run.first(), run.second()}});
}

}  // namespace hcclsim::hccl
