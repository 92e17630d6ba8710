#include "hccl/check/races.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "hccl/check/access_history.hpp"
#include "hccl/check/program/clocks.hpp"
#include "hccl/check/program/task_run.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t no_chain = std::numeric_limits<std::uint32_t>::max();

struct Event {
  std::uint32_t chain = no_chain;
  Clocks::Time time = 0;

  [[nodiscard]] bool exists() const { return chain != no_chain; }
  [[nodiscard]] bool same_queue(const Event& other) const { return chain == other.chain; }
  friend bool operator==(const Event&, const Event&) = default;
};

/// Two events that the clocks do not order.
struct Suspect {
  Event first;
  Event second;  // chain no_chain: the end of the rank that owns the bytes
  bool notify = false;
  RankBytes bytes;  // what both touch
};

/// Observes a run and collects suspects.
class RaceSearch : AccessHistory<RaceSearch, Event> {
 public:
  RaceSearch(const TaskProgram& program, const std::vector<std::vector<Bytes>>& borders,
             const std::vector<std::uint32_t>& followed_by_all)
      : AccessHistory(borders,
                      [&](Rank rank) {
                        return Event{program.chain(rank, 0), Clocks::start};
                      }),
        program_(program),
        clocks_(program, followed_by_all),
        waited_(std::size_t{program.ranks} * program.notifies) {}

  void enter(Rank rank, const ProgramPart* begin, const ProgramPart* end) { clocks_.enter(rank, begin, end); }

  void leave(Rank rank) {
    clocks_.leave(rank);
    end(rank);
  }

  void perform(std::uint32_t chain, std::uint32_t number, const ProgramTask& task) {
    clocks_.advance(chain, number);
    const Rank rank = program_.rank_of(chain);
    const Event event{chain, Clocks::time_of(number)};
    if (is_wait(task.kind)) {
      const std::size_t slot = std::size_t{rank} * program_.notifies + task.value;
      // What the post that it takes knows does not count: only then the wait takes no other one.
      const Event& before = waited_[slot];
      if (before.exists() && !ordered(before, event)) add({before, event, true, {rank, {}}});
      clocks_.wait(chain, slot);
      waited_[slot] = event;
    } else if (is_post(task.kind)) {
      const std::size_t slot = std::size_t{task.peer} * program_.notifies + task.value;
      const Event& before = waited_[slot];
      if (before.exists() && !ordered(before, event)) add({before, event, true, {task.peer, {}}});
      clocks_.post(chain, slot);
    } else {
      for (const Movement& movement : program_.movements_of(task)) {
        access(event, source_rank(task, rank), movement.source, Access::read);
        access(event, destination_rank(task, rank), movement.destination, access_to_change(task.kind, program_.type));
      }
    }
  }

  [[nodiscard]] const std::vector<Suspect>& suspects() const { return suspects_; }
  /// Pairs of reductions that need no order.
  [[nodiscard]] const std::vector<Suspect>& free_suspects() const { return free_suspects_; }

 private:
  friend AccessHistory;

  [[nodiscard]] bool ordered(const Event& first, const Event& second) const {
    return clocks_.ordered(first.chain, first.time, second.chain);
  }
  [[nodiscard]] bool before_end(const Event& event) const { return clocks_.before_end(event.chain, event.time); }
  void suspect(const Event& first, const Event& second, const RankBytes& bytes) { add({first, second, false, bytes}); }

  void suspect_free(const Event& first, const Event& second) {
    constexpr std::size_t some = 1024;  // one that is confirmed is enough
    if (free_suspects_.size() < some) free_suspects_.push_back({first, second, false, {}});
  }

  /// Adds a suspect, or its bytes to the one before if they continue it.
  void add(const Suspect& made) {
    if (!suspects_.empty() && made.bytes.range.length > 0) {
      Suspect& last = suspects_.back();
      ByteRange& range = last.bytes.range;
      if (last.first == made.first && last.second == made.second && last.bytes.rank == made.bytes.rank &&
          range.buffer == made.bytes.range.buffer && range.offset + range.length == made.bytes.range.offset) {
        range.length += made.bytes.range.length;
        return;
      }
    }
    // Suspects that do not fit are found again in a later round, when earlier ones have been cleared.
    constexpr std::size_t most_suspects = 65536;
    if (suspects_.size() < most_suspects) suspects_.push_back(made);
  }

  const TaskProgram& program_;
  Clocks clocks_;
  std::vector<Event> waited_;  // last wait for each notify slot
  std::vector<Suspect> suspects_;
  std::vector<Suspect> free_suspects_;
};

class Reporter {
 public:
  explicit Reporter(const TaskProgram& program) : program_(program) {}

  void report(const Suspect& suspect, Findings& findings) const {
    if (!findings.wanted()) return;
    const RankBytes& bytes = suspect.bytes;
    const std::optional<TaskId> first = id_of(suspect.first);
    const std::optional<TaskId> second = id_of(suspect.second);
    if (suspect.notify) {
      findings.keep(notify_finding(program_, *first, *second, bytes.rank));
      return;
    }
    const bool both_reduce = first && second && reduces_into(*first, bytes) && reduces_into(*second, bytes);
    findings.keep(race_finding(program_, first, second, bytes, both_reduce));
  }

 private:
  /// Nothing for the start and the end of a rank.
  [[nodiscard]] std::optional<TaskId> id_of(const Event& event) const {
    if (!event.exists() || event.time == Clocks::start) return {};
    return program_.task_id(event.chain, event.time - Clocks::time_of(0));
  }
  /// The task reduces into these bytes and does not read them as its source.
  [[nodiscard]] bool reduces_into(const TaskId& id, const RankBytes& bytes) const {
    const ProgramTask& task = program_.task(id);
    if (!reduces(task.kind) || destination_rank(task, id.rank) != bytes.rank) return false;
    const std::span<const Movement> moved = program_.movements_of(task);
    return std::any_of(moved.begin(), moved.end(), [&](const Movement& movement) {
      const ByteRange& range = movement.destination;
      return range.buffer == bytes.range.buffer && range.offset <= bytes.range.offset &&
             bytes.range.offset < range.offset + range.length;
    });
  }

  const TaskProgram& program_;
};

}  // namespace

Finding race_finding(const TaskProgram& program, const std::optional<TaskId>& first,
                     const std::optional<TaskId>& second, const RankBytes& bytes, bool both_reduce) {
  const std::string where = fmt::format("{} {}+{} of rank {}", name_of(bytes.range.buffer), bytes.range.offset,
                                        bytes.range.length, bytes.rank);
  Finding finding{both_reduce ? "reduction-order" : "race", {}, {bytes.rank}, {}, {bytes}};
  for (const std::optional<TaskId>& task : {first, second}) {
    if (task) finding.tasks.push_back(*task);
  }
  if (!first) {
    finding.kind = "before-start";
    finding.message = fmt::format("{} touches {}, which may not have arrived yet", program.describe(*second), where);
  } else if (!second) {
    finding.kind = "after-end";
    finding.message = fmt::format("{} touches {}, which may have finished already", program.describe(*first), where);
  } else {
    finding.message =
        fmt::format("{} and {} touch {} in no fixed order", program.describe(*first), program.describe(*second), where);
  }
  return finding;
}

Finding two_waiters_finding(const TaskProgram& program, const TaskId& first, const TaskId& second) {
  return {
      "two-waiters",
      fmt::format("{}: {} waits for the same notify, and nothing but the posts orders them, so either may take a post",
                  program.describe(second), program.describe(first)),
      {second.rank},
      {first, second}};
}

Finding notify_finding(const TaskProgram& program, const TaskId& wait, const TaskId& use, Rank owner) {
  if (is_wait(program.task(use).kind)) return two_waiters_finding(program, wait, use);
  return {
      "notify-overwritten",
      fmt::format("{} may come before {} has taken the post before it", program.describe(use), program.describe(wait)),
      {owner},
      {wait, use}};
}

bool check_races(const TaskProgram& program, Findings& matching, Findings& races) {
  const std::vector<std::vector<Bytes>> borders = access_borders(program);
  const Reporter reporter(program);
  std::vector<std::uint32_t> followed;
  bool order_is_free = false;
  // A suspect whose first chain is followed by all chains is a race. Other suspects may be ordered through chains that
  // the clocks do not follow. So the search is repeated with some of their chains followed by all, until there is a
  // race or no suspect. Every round follows at least one more chain, so the search ends.
  constexpr std::size_t chains_per_round = 256;
  for (bool decided = false; !decided;) {
    RaceSearch search(program, borders, followed);
    TaskRun<RaceSearch>(program, search).run();
    decided = true;
    std::vector<std::uint32_t> more;
    const auto is_confirmed = [&](const Suspect& suspect) {
      const std::uint32_t chain = suspect.first.chain;
      if (suspect.second.chain == chain || std::binary_search(followed.begin(), followed.end(), chain)) return true;
      if (std::find(more.begin(), more.end(), chain) == more.end() && more.size() < chains_per_round) {
        more.push_back(chain);
      }
      return false;
    };
    for (const Suspect& suspect : search.suspects()) {
      if (is_confirmed(suspect)) reporter.report(suspect, suspect.notify ? matching : races);
    }
    for (const Suspect& suspect : search.free_suspects()) {
      order_is_free = order_is_free || is_confirmed(suspect);
    }
    if (more.empty() || !races.empty() || !matching.empty()) continue;
    decided = false;
    followed.insert(followed.end(), more.begin(), more.end());
    std::sort(followed.begin(), followed.end());
  }
  return order_is_free;
}

}  // namespace hcclsim::hccl
