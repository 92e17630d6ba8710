#include "hccl/check/symmetry/rounds_in_time.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

namespace hcclsim::hccl {
namespace {

/// The range has as many bytes in every round, for every position.
bool has_one_length(const Range& range) {
  return std::ranges::all_of(range.cuts, [](const Cut& cut) {
    return cut.kind != Cut::Kind::halving && cut.index.position == 0 && cut.index.round == 0;
  });
}

/// One task that needs nobody else, as long in every round.
bool repeats_a_task(const Loop& loop) {
  if (loop.tasks.size() != 1) return false;
  const Task& task = loop.tasks.front();
  return (task.kind == TaskKind::copy || task.kind == TaskKind::reduce) && has_one_length(task.source) &&
         has_one_length(task.destination);
}

bool alike(const Loop& first, const Loop& second) {
  if (!repeats_a_task(first) || !repeats_a_task(second)) return false;
  const Task& one = first.tasks.front();
  const Task& other = second.tasks.front();
  return one.kind == other.kind && one.by_core == other.by_core && one.source.cuts == other.source.cuts &&
         one.destination.cuts == other.destination.cuts;
}

std::int64_t rounds_of(std::span<const Loop> loops, const Place& place) {
  std::int64_t sum = 0;
  for (const Loop& loop : loops) {
    const std::int64_t rounds = std::max<std::int64_t>(loop.rounds.at(place), 0);
    sum += loop.most_rounds < 0 ? rounds : std::min<std::int64_t>(rounds, loop.most_rounds);
  }
  return sum;
}

}  // namespace

bool same_rounds_in_time(const Schedule& schedule, const Strand& strand) {
  const std::span<const Loop> loops = strand.loops;
  for (std::size_t begin = 0, end = 0; begin < loops.size(); begin = end) {
    end = begin + 1;
    if (loops[begin].rounds.position == 0) continue;
    while (end < loops.size() && alike(loops[begin], loops[end])) ++end;
    if (end == begin + 1) return false;
    const std::span<const Loop> one = loops.subspan(begin, end - begin);
    for (std::uint32_t queue = strand.first_queue; queue < strand.first_queue + strand.queues; ++queue) {
      const std::int64_t rounds = rounds_of(one, {.queue = queue});
      for (Rank position = 1; position < schedule.groups[strand.group].size(); ++position) {
        if (rounds_of(one, {.position = position, .queue = queue}) != rounds) return false;
      }
    }
  }
  return true;
}

}  // namespace hcclsim::hccl
