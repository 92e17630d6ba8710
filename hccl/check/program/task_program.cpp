#include "hccl/check/program/task_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

std::string text_of(const ByteRange& range) {
  return fmt::format("{} {}+{}", name_of(range.buffer), range.offset, range.length);
}

/// Unrolls rank by rank; looks at every closed form before it is evaluated.
class Unroller {
 public:
  Unroller(const Schedule& schedule, Rank period, Findings& findings) : schedule_(schedule), findings_(findings) {
    program_.period = period;
  }

  TaskProgram unroll() {
    static_cast<Operation&>(program_) = static_cast<const Operation&>(schedule_);
    program_.scratch = schedule_.scratch;
    program_.ccl = schedule_.ccl;
    program_.queues = schedule_.queues;
    program_.notifies = schedule_.notifies;
    program_.first_part.push_back(0);
    check_header();
    if (!findings_.empty()) return std::move(program_);
    const std::uint32_t stages = schedule_.stage_count();
    for (std::uint32_t stage = 0; stage < stages; ++stage) program_.stages.push_back(schedule_.stage(stage).name);
    for (Rank rank = 0; rank < program_.unrolled(); ++rank) {
      numbers_.assign(schedule_.queues, 0);
      for (std::uint32_t stage = 0; stage < stages; ++stage) unroll_stage(rank, stage);
      program_.first_part.push_back(program_.parts.size());
    }
    return std::move(program_);
  }

 private:
  template <typename... Args>
  void find(std::string_view kind, fmt::format_string<Args...> format, Args&&... args) {
    if (findings_.wanted()) {
      findings_.keep({std::string(kind), fmt::format(format, std::forward<Args>(args)...)});
    }
  }

  /// Checks the schedule as a whole; all other checks may rely on this.
  void check_header() {
    const Bytes element = size_of(schedule_.type);
    if (schedule_.ranks == 0) find("schedule", "a schedule needs at least one rank");
    if (schedule_.queues == 0) find("schedule", "a rank needs at least one queue");
    if (schedule_.alignment == 0 || schedule_.alignment % element != 0) {
      find("alignment", "alignment {} is not a multiple of the {} bytes of {}", schedule_.alignment, element,
           name_of(schedule_.type));
    }
    if (std::uint64_t{schedule_.ranks} * schedule_.queues > std::numeric_limits<std::uint32_t>::max()) {
      find("schedule", "{} ranks with {} queues each are too many", schedule_.ranks, schedule_.queues);
    }
    for (const Stage& stage : schedule_.stages) {
      for (const Strand& strand : stage.strands) check_strand(stage, strand);
    }
  }

  void check_strand(const Stage& stage, const Strand& strand) {
    if (strand.group >= schedule_.groups.size()) {
      find("group", "stage '{}': group {}; the schedule has {}", stage.name, strand.group, schedule_.groups.size());
    }
    if (strand.first_queue > schedule_.queues || strand.queues > schedule_.queues - strand.first_queue) {
      find("queue", "stage '{}': queues {}+{}; a rank has {}", stage.name, strand.first_queue, strand.queues,
           schedule_.queues);
    }
    for (const Loop& loop : strand.loops) {
      for (const Task& task : loop.tasks) {
        check_groups(stage, task.source);
        check_groups(stage, task.destination);
        if (has_peer(task.kind) && (task.peer.kind == Peer::Kind::none || task.peer.group >= schedule_.groups.size())) {
          find("group", "stage '{}': a {} needs a peer in one of the {} groups", stage.name, name_of(task.kind),
               schedule_.groups.size());
        }
      }
    }
  }

  void check_groups(const Stage& stage, const Range& range) {
    for (const Cut& cut : range.cuts) {
      if (cut.group >= schedule_.groups.size()) {
        find("group", "stage '{}': a range is cut by group {}; the schedule has {}", stage.name, cut.group,
             schedule_.groups.size());
      } else if (cut.neighbours == 0) {
        find("range", "stage '{}': the parts of a range are made of 0 slices", stage.name);
      } else if (cut.parts == 0 || (cut.kind == Cut::Kind::halving && !std::has_single_bit(cut.parts))) {
        find("range", "stage '{}': a range is cut into {} parts; at least 1, and a power of two for halving",
             stage.name, cut.parts);
      }
    }
  }

  void unroll_stage(Rank rank, std::uint32_t stage) {
    for (std::uint32_t queue = 0; queue < schedule_.queues; ++queue) {
      const std::uint32_t window = stage / static_cast<std::uint32_t>(schedule_.stages.size());
      const std::size_t first = program_.tasks.size();
      if (const Strand* const strand = only_strand(rank, stage, queue); strand != nullptr) {
        unroll_strand(*strand, rank, queue, window, stage);
      } else if (const TaskList* const list = schedule_.stage(stage).lists.find(window, rank, queue); list != nullptr) {
        for (const Task& task : list->tasks) unroll_task(task, rank, {0, 0, queue, window}, 0, stage);
      }
      const auto count = static_cast<std::uint32_t>(program_.tasks.size() - first);
      if (count == 0) continue;
      program_.parts.push_back({stage, queue, numbers_[queue], count, first});
      numbers_[queue] += count;
    }
  }

  void unroll_strand(const Strand& strand, Rank rank, std::uint32_t queue, std::uint32_t window, std::uint32_t stage) {
    Place place{schedule_.groups[strand.group].position(rank), 0, queue, window};
    for (const Loop& loop : strand.loops) {
      place.round = 0;
      std::int64_t rounds = loop.rounds.at(place);
      if (loop.most_rounds >= 0) rounds = std::min<std::int64_t>(rounds, loop.most_rounds);
      for (std::int64_t round = 0; round < rounds; ++round) {
        place.round = static_cast<std::uint32_t>(round);
        for (const Task& task : loop.tasks) unroll_task(task, rank, place, strand.group, stage);
      }
    }
  }

  /// The strand that a queue of a rank runs in a stage.
  const Strand* only_strand(Rank rank, std::uint32_t stage, std::uint32_t queue) {
    const Strand* found = nullptr;
    for (const Strand& strand : schedule_.stage(stage).strands) {
      if (queue < strand.first_queue || queue - strand.first_queue >= strand.queues) continue;
      if (schedule_.groups[strand.group].position(rank) == Group::not_a_member) continue;
      if (found != nullptr) {
        find("queue", "stage '{}': two strands want queue {} of rank {}", program_.stages[stage], queue, rank);
        return found;
      }
      found = &strand;
    }
    return found;
  }

  void unroll_task(const Task& task, Rank rank, const Place& place, std::uint16_t group, std::uint32_t stage) {
    ProgramTask made{task.kind, 0, rank, 0};
    const bool notify = is_notify(task.kind);
    std::string problem;
    if (has_peer(task.kind)) problem = set_peer(made, task.peer, rank, place);
    const char* kind = "peer";
    if (problem.empty() && notify) {
      kind = "notify";
      const std::int64_t slot = task.notify.at(place);
      if (slot < 0 || slot >= schedule_.notifies) {
        problem = fmt::format("notify {}; a rank has {}", slot, schedule_.notifies);
      }
      made.value = static_cast<std::uint32_t>(slot);
    } else if (problem.empty()) {
      kind = "range";
      problem = range_problem(task.source, rank, place, group);
      if (problem.empty()) problem = range_problem(task.destination, rank, place, group);
    }
    if (!problem.empty()) {
      if (!findings_.wanted()) return;
      const auto number = static_cast<std::uint32_t>(numbers_[place.queue]);
      findings_.keep({kind,
                      fmt::format("rank {}, queue {}, stage '{}', round {}: {}: {}", rank, place.queue,
                                  program_.stages[stage], place.round, name_of(task.kind), problem),
                      {rank},
                      {{rank, place.queue, number}}});
      return;
    }
    if (!notify) add_movements(made, task, rank, place, group);
    program_.tasks.push_back(made);
  }

  void add_movements(ProgramTask& made, const Task& task, Rank rank, const Place& place, std::uint16_t group) {
    const Viewer source{rank, source_rank(made, rank), place, group};
    const Viewer destination{rank, destination_rank(made, rank), place, group};
    movements_.resolve(schedule_, task, source, destination);
    if (movements_.size() > std::numeric_limits<std::uint16_t>::max()) {
      find("range", "rank {}, queue {}: a {} in {} pieces; up to {} can be checked", rank, place.queue,
           name_of(task.kind), movements_.size(), std::numeric_limits<std::uint16_t>::max());
      return;
    }
    made.value = static_cast<std::uint32_t>(program_.movements.size());
    made.pieces = static_cast<std::uint16_t>(movements_.size());
    program_.movements.insert(program_.movements.end(), movements_.begin(), movements_.end());
  }

  std::string set_peer(ProgramTask& made, const Peer& peer, Rank rank, const Place& place) const {
    if (peer.kind == Peer::Kind::rank) {
      made.peer = static_cast<Rank>(peer.value.base);
      return made.peer < schedule_.ranks ? "" : no_rank(made.peer);
    }
    const Group& group = schedule_.groups[peer.group];
    if (peer.kind == Peer::Kind::flip) {
      const std::int64_t bit = peer.value.at(place);
      if (bit < 0 || bit > 30) return fmt::format("bit {} of a position is flipped", bit);
    }
    const std::uint32_t position = peer.position(place, group.size());
    if (position >= group.size()) return fmt::format("position {} in a group of {}", position, group.size());
    made.peer = group.member(rank, position);
    return made.peer < schedule_.ranks ? "" : no_rank(made.peer);
  }
  [[nodiscard]] std::string no_rank(Rank peer) const {
    return fmt::format("peer {}; there are {} ranks", peer, schedule_.ranks);
  }

  /// What keeps a range from having numbers, or nothing.
  std::string range_problem(const Range& range, Rank rank, const Place& place, std::uint16_t strand_group) const {
    for (const Cut& cut : range.cuts) {
      Place seen = place;
      if (cut.group != strand_group) seen.position = schedule_.groups[cut.group].position(rank);
      if (seen.position == Group::not_a_member) return fmt::format("a cut by group {}, not of this rank", cut.group);
      const std::int64_t index = cut.index.at(seen);
      if (cut.kind == Cut::Kind::halving) {
        const auto most = std::int64_t{std::bit_width(cut.parts)} - 1;
        if (index < (cut.peer ? 1 : 0) || index > most) {
          return fmt::format("{} halvings of {} parts", index, cut.parts);
        }
      } else if (cut.ordered && cut.parts > schedule_.groups[cut.group].size()) {
        return fmt::format("{} ordered slices in a group of {}", cut.parts, schedule_.groups[cut.group].size());
      }
    }
    if (range.slot_stride != 0 && range.slot.at(place) < 0) return fmt::format("scratch slot {}", range.slot.at(place));
    return {};
  }

  const Schedule& schedule_;
  Findings& findings_;
  TaskProgram program_;
  Movements movements_;
  std::vector<std::uint32_t> numbers_;  // next number of each queue of the rank
};

const ProgramPart& part_of(const TaskProgram& program, const TaskId& id) {
  const Rank rank = program.representative(id.rank);
  for (std::size_t i = program.first_part[rank]; i < program.first_part[rank + 1]; ++i) {
    const ProgramPart& part = program.parts[i];
    if (part.queue == id.queue && id.number >= part.number && id.number - part.number < part.count) return part;
  }
  internal_error("rank {}, queue {} has no task {}", id.rank, id.queue, id.number);
}

}  // namespace

const ProgramTask& TaskProgram::task(const TaskId& id) const {
  const ProgramPart& part = part_of(*this, id);
  return tasks[part.first + (id.number - part.number)];
}

std::string TaskProgram::describe(const TaskId& id) const {
  const ProgramPart& part = part_of(*this, id);
  const ProgramTask& the_task = task(id);
  const bool is_unrolled = representative(id.rank) == id.rank;
  const Rank peer = (the_task.peer + (id.rank - representative(id.rank))) % ranks;
  std::string what(name_of(the_task.kind));
  if (is_wait(the_task.kind)) {
    what += fmt::format(" for notify {}", the_task.value);
  } else if (is_post(the_task.kind)) {
    what += fmt::format(" of notify {}", the_task.value);
    if (has_peer(the_task.kind)) what += fmt::format(" to rank {}", peer);
  } else {
    const std::span<const Movement> moved = movements_of(the_task);
    if (is_transfer(the_task.kind)) what += fmt::format("{} rank {}", reads(the_task.kind) ? " from" : " to", peer);
    if (moved.empty()) {
      what += ", no bytes";
    } else if (is_unrolled) {
      what += fmt::format(", {} -> {}", text_of(moved.front().source), text_of(moved.front().destination));
    }
    if (moved.size() > 1) what += fmt::format(" and {} pieces more", moved.size() - 1);
  }
  return fmt::format("rank {}, queue {}, task {} ({}, stage '{}')", id.rank, id.queue, id.number, what,
                     stages[part.stage]);
}

TaskProgram unroll(const Schedule& schedule, Findings& findings, std::optional<Rank> period) {
  return Unroller(schedule, period.value_or(schedule.ranks), findings).unroll();
}

}  // namespace hcclsim::hccl
