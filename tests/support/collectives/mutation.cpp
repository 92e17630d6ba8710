#include "tests/support/collectives/mutation.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

namespace hcclsim::test {

using namespace hccl;

namespace {

using Random = std::mt19937_64;

template <typename Item>
const Item* pick(const std::vector<Item>& items, Random& random) {
  return items.empty() ? nullptr : &items[random() % items.size()];
}

bool moves_bytes(TaskKind kind) { return !is_notify(kind); }

bool suits(TaskKind kind, Mutation mutation) {
  switch (mutation) {
    case Mutation::delete_wait:
      return is_wait(kind);
    case Mutation::delete_post:
      return is_post(kind);
    case Mutation::swap_tasks:
      return true;
    case Mutation::double_reduction:
    case Mutation::drop_reduction:
      return reduces(kind);
    case Mutation::change_peer:
      return has_peer(kind);
    case Mutation::change_notify:
      return !moves_bytes(kind);
    default:
      return moves_bytes(kind);
  }
}

TaskKind without_reduction(TaskKind kind) {
  if (kind == TaskKind::write_reduce) return TaskKind::write;
  return kind == TaskKind::read_reduce ? TaskKind::read : TaskKind::copy;
}

/// A task in a program.
struct Spot {
  std::size_t part = 0;
  std::uint32_t index = 0;
};

/// Changes one task of one rank.
class ProgramMutation {
 public:
  ProgramMutation(TaskProgram& program, Random& random) : program_(program), random_(random) {}

  /// Blocks of the communicator's buffer, which lie `stride` apart, begin too early; a single block loses its end.
  bool shrink_ccl(Bytes stride) {
    if (program_.ccl == 0) return false;
    if (program_.blocks() == 1) {
      program_.ccl -= std::min(program_.ccl, program_.alignment);
      return true;
    }
    for (Movement& movement : program_.movements) {
      for (ByteRange* range : {&movement.source, &movement.destination}) {
        if (range->buffer == Buffer::ccl) range->offset -= range->offset / stride * program_.alignment;
      }
    }
    return true;
  }

  /// False if there is no place for it.
  bool apply(Mutation mutation) {
    std::vector<Spot> spots;
    for (std::size_t part = 0; part < program_.parts.size(); ++part) {
      for (std::uint32_t index = 0; index < program_.parts[part].count; ++index) {
        if (suits(program_.tasks[program_.parts[part].first + index].kind, mutation)) spots.push_back({part, index});
      }
    }
    const Spot* spot = pick(spots, random_);
    return spot != nullptr && apply(mutation, *spot);
  }

 private:
  bool apply(Mutation mutation, const Spot& spot) {
    ProgramPart& part = program_.parts[spot.part];
    ProgramTask& task = program_.tasks[part.first + spot.index];
    switch (mutation) {
      case Mutation::delete_wait:
      case Mutation::delete_post:
        erase(spot);
        return true;
      case Mutation::swap_tasks:
        if (spot.index + 1 == part.count) return false;
        std::swap(task, program_.tasks[part.first + spot.index + 1]);
        return true;
      case Mutation::shift_offset:
        return shift(task);
      case Mutation::double_reduction:
        insert_copy(spot);
        return true;
      case Mutation::drop_reduction:
        if (task.kind == TaskKind::reduce) {
          erase(spot);
        } else {
          task.kind = without_reduction(task.kind);
        }
        return true;
      case Mutation::reorder_transfers:
        return reorder(part, task);
      case Mutation::change_peer:
        task.peer = static_cast<Rank>(random_() % program_.ranks);
        return true;
      case Mutation::change_notify:
        task.value = static_cast<std::uint32_t>(random_() % program_.notifies);
        return true;
      case Mutation::shrink_window:
        return false;  // a matter of all tasks
    }
    return false;
  }

  void erase(const Spot& spot) {
    program_.tasks.erase(program_.tasks.begin() +
                         static_cast<std::ptrdiff_t>(program_.parts[spot.part].first + spot.index));
    --program_.parts[spot.part].count;
    renumber();
  }

  void insert_copy(const Spot& spot) {
    const std::size_t at = program_.parts[spot.part].first + spot.index;
    const ProgramTask copy = program_.tasks[at];
    program_.tasks.insert(program_.tasks.begin() + static_cast<std::ptrdiff_t>(at), copy);
    ++program_.parts[spot.part].count;
    renumber();
  }

  /// Places and numbers of all parts after the count of one has changed; a part without tasks goes.
  void renumber() {
    std::vector<ProgramPart> parts;
    std::size_t first = 0;
    for (Rank rank = 0; rank < program_.ranks; ++rank) {
      std::vector<std::uint32_t> numbers(program_.queues, 0);
      const std::size_t begin = std::exchange(program_.first_part[rank], parts.size());
      const std::size_t end = program_.first_part[rank + 1];
      for (std::size_t i = begin; i < end; ++i) {
        ProgramPart part = program_.parts[i];
        part.first = first;
        part.number = numbers[part.queue];
        first += part.count;
        numbers[part.queue] += part.count;
        if (part.count > 0) parts.push_back(part);
      }
    }
    program_.first_part[program_.ranks] = parts.size();
    program_.parts = std::move(parts);
  }

  bool shift(const ProgramTask& task) {
    if (task.pieces == 0) return false;
    Movement& movement = program_.movements_of(task)[random_() % task.pieces];
    const Bytes by = random_() % 2 == 0 ? program_.alignment : Bytes{0} - program_.alignment;
    const auto sides = random_() % 3;
    if (sides != 0) movement.source.offset += by;
    if (sides != 1) movement.destination.offset += by;
    return true;
  }

  bool reorder(const ProgramPart& part, ProgramTask& task) {
    std::vector<ProgramTask*> others;
    for (std::uint32_t index = 0; index < part.count; ++index) {
      ProgramTask& other = program_.tasks[part.first + index];
      if (&other != &task && moves_bytes(other.kind)) others.push_back(&other);
    }
    ProgramTask* const* other = pick(others, random_);
    if (other == nullptr) return false;
    std::swap(task, **other);
    return true;
  }

  TaskProgram& program_;
  Random& random_;
};

/// A task in the closed form of a schedule.
struct FormSpot {
  Loop* loop = nullptr;
  std::size_t index = 0;
};

/// Changes a closed form.
class FormMutation {
 public:
  FormMutation(Schedule& schedule, Random& random) : schedule_(schedule), random_(random) {}

  bool apply(Mutation mutation) {
    std::vector<FormSpot> spots;
    for (Stage& stage : schedule_.stages) {
      for (Strand& strand : stage.strands) {
        for (Loop& loop : strand.loops) {
          for (std::size_t i = 0; i < loop.tasks.size(); ++i) {
            if (suits(loop.tasks[i].kind, mutation)) spots.push_back({&loop, i});
          }
        }
      }
    }
    const FormSpot* spot = pick(spots, random_);
    return spot != nullptr && apply(mutation, *spot);
  }

 private:
  bool apply(Mutation mutation, const FormSpot& spot) {
    std::vector<Task>& tasks = spot.loop->tasks;
    Task& task = tasks[spot.index];
    const auto at = tasks.begin() + static_cast<std::ptrdiff_t>(spot.index);
    const std::int32_t by = random_() % 2 == 0 ? 1 : -1;
    switch (mutation) {
      case Mutation::delete_wait:
      case Mutation::delete_post:
        tasks.erase(at);
        return true;
      case Mutation::swap_tasks:
        if (spot.index + 1 == tasks.size()) return false;
        std::swap(task, tasks[spot.index + 1]);
        return true;
      case Mutation::shift_offset:
        return shift(task, by);
      case Mutation::double_reduction: {
        const Task copy = task;
        tasks.insert(at, copy);
        return true;
      }
      case Mutation::drop_reduction:
        if (task.kind == TaskKind::reduce) {
          tasks.erase(at);
        } else {
          task.kind = without_reduction(task.kind);
        }
        return true;
      case Mutation::shrink_window:
        return shrink(task);
      case Mutation::reorder_transfers:
        return false;  // loops have few transfers; done on programs
      case Mutation::change_peer:
        task.peer.value.base += by;
        return true;
      case Mutation::change_notify:
        task.notify.base += by;
        return true;
    }
    return false;
  }

  bool shift(Task& task, std::int32_t by) {
    const auto sides = random_() % 3;
    bool shifted = false;
    for (Range* range : {&task.source, &task.destination}) {
      if (sides == (range == &task.source ? 0U : 1U) || range->cuts.empty()) continue;
      range->cuts.back().index.base += by;
      shifted = true;
    }
    return shifted;
  }

  /// Every use of the task's window is changed in the same way, as by a wrong size.
  bool shrink(const Task& of) {
    const Range& window = of.source.slot_stride != 0 ? of.source : of.destination;
    const Bytes stride = window.slot_stride;
    if (stride == 0) return false;
    for (Stage& stage : schedule_.stages) {
      for (Strand& strand : stage.strands) {
        for (Loop& loop : strand.loops) {
          for (Task& task : loop.tasks) {
            for (Range* range : {&task.source, &task.destination}) {
              if (range->slot_stride != stride) continue;
              range->slot_stride = stride > schedule_.alignment ? stride - schedule_.alignment : stride;
              if (stride == schedule_.alignment) range->slot = {};
            }
          }
        }
      }
    }
    return true;
  }

  Schedule& schedule_;
  Random& random_;
};

bool equal(const ByteRange& a, const ByteRange& b) {
  return a.length == b.length && (a.length == 0 || (a.buffer == b.buffer && a.offset == b.offset));
}

bool equal(const TaskProgram& a, const TaskProgram& b) {
  if (a.tasks.size() != b.tasks.size() || a.parts.size() != b.parts.size()) return false;
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    if (a.parts[i].count != b.parts[i].count || a.parts[i].queue != b.parts[i].queue) return false;
  }
  for (std::size_t i = 0; i < a.tasks.size(); ++i) {
    const ProgramTask& left = a.tasks[i];
    const ProgramTask& right = b.tasks[i];
    if (left.kind != right.kind || left.peer != right.peer) return false;
    if (!moves_bytes(left.kind)) {
      if (left.value != right.value) return false;
      continue;
    }
    const auto same = [](const Movement& here, const Movement& there) {
      return equal(here.source, there.source) && equal(here.destination, there.destination);
    };
    const std::span<const Movement> here = a.movements_of(left);
    const std::span<const Movement> there = b.movements_of(right);
    if (!std::equal(here.begin(), here.end(), there.begin(), there.end(), same)) return false;
  }
  return true;
}

}  // namespace

std::string_view name_of(Mutation mutation) {
  static constexpr std::array<std::string_view, mutations> names{
      "delete a wait",    "delete a post",   "swap two tasks",    "shift an offset", "double a reduction",
      "drop a reduction", "shrink a window", "reorder transfers", "change a peer",   "change a notify"};
  return names[static_cast<std::size_t>(mutation)];
}

std::optional<Schedule> mutate_closed_form(const Schedule& schedule, Mutation mutation, std::mt19937_64& random) {
  Schedule changed = schedule;
  if (!FormMutation(changed, random).apply(mutation)) return {};
  return changed;
}

std::optional<Mutant> mutate(const Schedule& schedule, const TaskProgram& program, Mutation mutation,
                             std::mt19937_64& random) {
  Mutant mutant;
  if (mutation == Mutation::shrink_window && schedule.ccl > 0 && random() % 2 == 0) {
    mutant.program = program;
    const std::uint64_t elements = schedule.window > 0 ? schedule.window : schedule.elements;
    if (!ProgramMutation(mutant.program, random).shrink_ccl(elements * size_of(schedule.type))) return {};
    if (equal(mutant.program, program) && mutant.program.ccl == program.ccl) return {};
    return mutant;
  }
  const bool in_closed_form = mutation == Mutation::shrink_window || random() % 3 == 0;
  if (in_closed_form) {
    const std::optional<Schedule> changed = mutate_closed_form(schedule, mutation, random);
    if (!changed) return {};
    Findings findings(1);
    mutant.program = unroll(*changed, findings);
    mutant.unrolls = findings.empty();
  } else {
    mutant.program = program;
    if (!ProgramMutation(mutant.program, random).apply(mutation)) return {};
  }
  if (mutant.unrolls && equal(mutant.program, program)) return {};
  return mutant;
}

}  // namespace hcclsim::test
