#include "hccl/check/races.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "hccl/check/program/clocks.hpp"
#include "hccl/check/program/interval_map.hpp"
#include "hccl/check/program/task_run.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t no_chain = std::numeric_limits<std::uint32_t>::max();

struct Event {
  std::uint32_t chain = no_chain;
  Clocks::Time time = 0;
  friend bool operator==(const Event&, const Event&) = default;
};

/// Two events that the clocks do not order.
struct Suspect {
  Event first;
  Event second;  // chain no_chain: the end of the rank that owns the bytes
  bool notify = false;
  RankBytes bytes;  // what both touch
};

/// Who touched an interval: the last change and all reads since.
struct History {
  Event written;
  Event read;
  std::vector<Event> more_reads;
};

/// Observes a run and collects suspects.
class RaceSearch {
 public:
  RaceSearch(const TaskProgram& program, const std::vector<std::vector<Bytes>>& borders,
             const std::vector<std::uint32_t>& followed_by_all)
      : program_(program),
        clocks_(program, followed_by_all),
        waited_(std::size_t{program.ranks} * program.notifies),
        ended_(program.ranks, false) {
    memories_.reserve(borders.size());
    for (std::size_t memory = 0; memory < borders.size(); ++memory) {
      const auto rank = static_cast<Rank>(memory / buffer_kinds);
      memories_.emplace_back(borders[memory], History{{program.chain(rank, 0), Clocks::start}, {}, {}});
    }
  }

  void enter(Rank rank, const ProgramPart* begin, const ProgramPart* end) { clocks_.enter(rank, begin, end); }

  void leave(Rank rank) {
    clocks_.leave(rank);
    ended_[rank] = true;
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch, Buffer::ccl}) check_end(rank, buffer);
  }

  void perform(std::uint32_t chain, std::uint32_t number, const ProgramTask& task) {
    clocks_.advance(chain, number);
    const Rank rank = program_.rank_of(chain);
    const Event event{chain, Clocks::time_of(number)};
    if (task.kind == TaskKind::wait) {
      const std::size_t slot = std::size_t{rank} * program_.notifies + task.value;
      clocks_.wait(chain, slot);
      waited_[slot] = event;
    } else if (task.kind == TaskKind::post) {
      const std::size_t slot = std::size_t{task.peer} * program_.notifies + task.value;
      const Event& before = waited_[slot];
      if (before.chain != no_chain && !clocks_.ordered(before.chain, before.time, chain)) {
        suspect({before, event, true, {task.peer, {}}});
      }
      clocks_.post(chain, slot);
    } else {
      for (const Movement& movement : program_.movements_of(task)) {
        access(event, source_rank(task, rank), movement.source, false);
        access(event, destination_rank(task, rank), movement.destination, true);
      }
    }
  }

  [[nodiscard]] const std::vector<Suspect>& suspects() const { return suspects_; }

 private:
  void access(const Event& event, Rank owner, const ByteRange& range, bool changes) {
    IntervalMap<History>& memory = memories_[memory_of(owner, range.buffer)];
    const Bytes end = range.offset + range.length;
    for (std::size_t i = memory.cut(range.offset); i < memory.count() && memory.begin(i) < end; ++i) {
      History& history = memory.state(i);
      const RankBytes bytes{owner, {range.buffer, memory.begin(i), memory.end(i) - memory.begin(i)}};
      if (ended_[owner]) suspect({event, {}, false, bytes});
      check_order(history.written, event, bytes);
      if (changes) {
        if (history.read.chain != no_chain) check_order(history.read, event, bytes);
        for (const Event& read : history.more_reads) check_order(read, event, bytes);
        history.written = event;
        history.read = {};
        history.more_reads.clear();
      } else {
        add_read(history, event);
      }
    }
  }

  static void add_read(History& history, const Event& event) {
    if (history.read.chain == no_chain || history.read.chain == event.chain) {
      history.read = event;
      return;
    }
    for (Event& read : history.more_reads) {
      if (read.chain != event.chain) continue;
      read = event;
      return;
    }
    history.more_reads.push_back(event);
  }

  void check_order(const Event& first, const Event& second, const RankBytes& bytes) {
    if (!clocks_.ordered(first.chain, first.time, second.chain)) suspect({first, second, false, bytes});
  }

  /// All accesses to the memory of a rank that has done everything happen before its end.
  void check_end(Rank rank, Buffer buffer) {
    const IntervalMap<History>& memory = memories_[memory_of(rank, buffer)];
    for (std::size_t i = 0; i < memory.count(); ++i) {
      const RankBytes bytes{rank, {buffer, memory.begin(i), memory.end(i) - memory.begin(i)}};
      const History& history = memory.state(i);
      const auto check = [&](const Event& event) {
        if (event.chain != no_chain && !clocks_.before_end(event.chain, event.time)) suspect({event, {}, false, bytes});
      };
      check(history.written);
      check(history.read);
      for (const Event& read : history.more_reads) check(read);
    }
  }

  /// Adds a suspect, or its bytes to the one before if they continue it.
  void suspect(const Suspect& made) {
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
  std::vector<IntervalMap<History>> memories_;
  std::vector<Event> waited_;  // last wait for each notify slot
  std::vector<char> ended_;    // by rank
  std::vector<Suspect> suspects_;
};

class Reporter {
 public:
  explicit Reporter(const TaskProgram& program) : program_(program) {}

  void report(const Suspect& suspect, Findings& findings) const {
    if (!findings.wanted()) return;
    const RankBytes& bytes = suspect.bytes;
    const std::string where = fmt::format("{} {}+{} of rank {}", name_of(bytes.range.buffer), bytes.range.offset,
                                          bytes.range.length, bytes.rank);
    const bool from_start = suspect.first.time == Clocks::start;
    const bool to_end = suspect.second.chain == no_chain;
    Finding finding{"race", {}, {bytes.rank}, {}, {bytes}};
    if (!from_start) finding.tasks.push_back(id_of(suspect.first));
    if (!to_end) finding.tasks.push_back(id_of(suspect.second));
    if (suspect.notify) {
      finding.kind = "notify-overwritten";
      finding.bytes.clear();
      finding.message = fmt::format("{} may come before {} has taken the post before it", text_of(suspect.second),
                                    text_of(suspect.first));
    } else if (from_start) {
      finding.kind = "before-start";
      finding.message = fmt::format("{} touches {}, which may not have arrived yet", text_of(suspect.second), where);
    } else if (to_end) {
      finding.kind = "after-end";
      finding.message = fmt::format("{} touches {}, which may have finished already", text_of(suspect.first), where);
    } else {
      if (reduces_into(suspect.first, bytes) && reduces_into(suspect.second, bytes)) finding.kind = "reduction-order";
      finding.message =
          fmt::format("{} and {} touch {} in no fixed order", text_of(suspect.first), text_of(suspect.second), where);
    }
    findings.keep(std::move(finding));
  }

 private:
  [[nodiscard]] TaskId id_of(const Event& event) const {
    return program_.task_id(event.chain, event.time - Clocks::time_of(0));
  }
  [[nodiscard]] std::string text_of(const Event& event) const { return program_.describe(id_of(event)); }
  /// The task reduces into these bytes and does not read them as its source.
  [[nodiscard]] bool reduces_into(const Event& event, const RankBytes& bytes) const {
    const ProgramTask& task = program_.task(id_of(event));
    if (!reduces(task.kind) || destination_rank(task, program_.rank_of(event.chain)) != bytes.rank) return false;
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

void check_races(const TaskProgram& program, Findings& matching, Findings& races) {
  const std::vector<std::vector<Bytes>> borders = access_borders(program);
  const Reporter reporter(program);
  std::vector<std::uint32_t> followed;
  // A suspect whose first chain is followed by all chains is a race. Other suspects may be ordered through chains that
  // the clocks do not follow. So the search is repeated with some of their chains followed by all, until there is a
  // race or no suspect. Every round follows at least one more chain, so the search ends.
  constexpr std::size_t chains_per_round = 256;
  for (bool decided = false; !decided;) {
    RaceSearch search(program, borders, followed);
    TaskRun<RaceSearch>(program, search).run();
    decided = true;
    std::vector<std::uint32_t> more;
    for (const Suspect& suspect : search.suspects()) {
      const std::uint32_t chain = suspect.first.chain;
      if (suspect.second.chain == chain || std::binary_search(followed.begin(), followed.end(), chain)) {
        reporter.report(suspect, suspect.notify ? matching : races);
      } else if (std::find(more.begin(), more.end(), chain) == more.end() && more.size() < chains_per_round) {
        more.push_back(chain);
      }
    }
    if (more.empty() || !races.empty() || !matching.empty()) continue;
    decided = false;
    followed.insert(followed.end(), more.begin(), more.end());
    std::sort(followed.begin(), followed.end());
  }
}

}  // namespace hcclsim::hccl
