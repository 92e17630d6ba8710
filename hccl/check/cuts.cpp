#include "hccl/check/cuts.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

using Groups = std::vector<std::uint32_t>;

std::size_t count_of(const Groups& group) {
  return group.empty() ? 0 : std::size_t{*std::max_element(group.begin(), group.end())} + 1;
}

/// Bytes of the blocks of the ranks of each group.
std::vector<Bytes> bytes_of_blocks(const Operation& operation, const Groups& group) {
  std::vector<Bytes> bytes(count_of(group), 0);
  for (Rank rank = 0; rank < operation.ranks; ++rank) {
    const std::uint64_t elements = operation.counts.empty()
                                       ? operation.elements
                                       : operation.counts.offset(0, rank + 1) - operation.counts.offset(0, rank);
    bytes[group[rank]] += elements * size_of(operation.type);
  }
  return bytes;
}

/// Of a group whose ranks have blocks of `own` bytes in all; not of alltoall and send-recv.
GroupBytes least_of(const Operation& operation, bool has_root, Bytes own) {
  const Bytes payload = operation.payload();
  const Bytes others = payload - own;
  switch (operation.collective) {
    case Collective::allreduce:
      return {payload, payload};
    case Collective::reduce:
      return has_root ? GroupBytes{0, payload} : GroupBytes{payload, 0};
    case Collective::broadcast:
      return has_root ? GroupBytes{payload, 0} : GroupBytes{0, payload};
    case Collective::reduce_scatter:
      return {others, own};
    case Collective::allgather:
      return {own, others};
    case Collective::scatter:
      return has_root ? GroupBytes{others, 0} : GroupBytes{0, own};
    case Collective::gather:
      return has_root ? GroupBytes{0, others} : GroupBytes{own, 0};
    default:
      return {};
  }
}

/// Adds bytes that go from one rank to another.
void add(std::vector<GroupBytes>& all, const Groups& group, Rank from, Rank to, Bytes bytes) {
  if (group[from] == group[to]) return;
  all[group[from]].out += bytes;
  all[group[to]].in += bytes;
}

/// What alltoall and send-recv have to carry between groups.
void add_pairs(const Operation& operation, const Groups& group, std::vector<GroupBytes>& all) {
  const Rank ranks = operation.ranks;
  const BlockCounts& counts = operation.counts;
  const Bytes element = size_of(operation.type);
  if (!counts.empty()) {
    for (Rank from = 0; from < ranks; ++from) {
      for (Rank to = 0; to < ranks; ++to) {
        add(all, group, from, to, (counts.offset(from, to + 1) - counts.offset(from, to)) * element);
      }
    }
  } else if (operation.collective == Collective::send_recv) {
    for (Rank from = 0; from < ranks; ++from) add(all, group, from, (from + 1) % ranks, operation.elements * element);
  } else {
    std::vector<Rank> members(all.size(), 0);
    for (const std::uint32_t number : group) ++members[number];
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].out = all[i].in = Bytes{members[i]} * (ranks - members[i]) * operation.elements * element;
    }
  }
}

/// Bytes that transfers of the program carry, by source and destination.
std::map<std::pair<Rank, Rank>, Bytes> carried(const TaskProgram& program) {
  std::map<std::pair<Rank, Rank>, Bytes> bytes;
  visit_tasks(program, [&](const TaskId& id, const ProgramPart& /*part*/, const ProgramTask& task) {
    if (!is_transfer(task.kind)) return;
    Bytes length = 0;
    for (const Movement& movement : program.movements_of(task)) length += movement.source.length;
    if (length > 0) bytes[{source_rank(task, id.rank), destination_rank(task, id.rank)}] += length;
  });
  return bytes;
}

Seconds time_of(Bytes bytes, BytesPerSecond speed) { return bytes == 0 ? 0 : static_cast<double>(bytes) / speed; }

BytesPerSecond sum_of(const std::vector<BytesPerSecond>& speeds) {
  BytesPerSecond sum = 0;
  for (const BytesPerSecond speed : speeds) sum += speed;
  return sum;
}

}  // namespace

std::vector<GroupBytes> least_crossing(const Operation& operation, const Groups& group) {
  std::vector<GroupBytes> least(count_of(group));
  if (least.size() < 2) return least;
  if (operation.collective == Collective::alltoall || operation.collective == Collective::send_recv) {
    add_pairs(operation, group, least);
    return least;
  }
  std::vector<Bytes> own(least.size(), 0);
  if (operation.blocks() == operation.ranks) own = bytes_of_blocks(operation, group);
  for (std::uint32_t i = 0; i < least.size(); ++i) least[i] = least_of(operation, i == group[operation.root], own[i]);
  return least;
}

std::vector<GroupBytes> crossing(const TaskProgram& program, const Groups& group) {
  std::vector<GroupBytes> found(count_of(group));
  for (const auto& [ends, bytes] : carried(program)) {
    // The same between all images of these ranks.
    for (Rank by = 0; by < program.ranks; by += program.period) {
      add(found, group, (ends.first + by) % program.ranks, (ends.second + by) % program.ranks, bytes);
    }
  }
  return found;
}

CutDistance least_of(const Operation& operation, const CutLevel& level) {
  CutDistance distance{.name = level.name, .groups = static_cast<std::uint32_t>(level.out.size())};
  const std::vector<GroupBytes> needed = least_crossing(operation, level.group);
  GroupBytes in_all;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    in_all.out += needed[i].out;
    in_all.in += needed[i].in;
    distance.least_time =
        std::max({distance.least_time, time_of(needed[i].out, level.out[i]), time_of(needed[i].in, level.in[i])});
  }
  distance.least = std::max(in_all.out, in_all.in);
  if (operation.collective == Collective::allreduce && needed.size() > 1) {
    distance.least = std::max(distance.least, 2 * (needed.size() - 1) * operation.payload());
  }
  distance.least_time = std::max(
      {distance.least_time, time_of(distance.least, sum_of(level.out)), time_of(distance.least, sum_of(level.in))});
  return distance;
}

void add_cuts(const TaskProgram& program, const CheckOptions& options, Distances& distances) {
  // The steps of a barrier are no transfers.
  if (program.collective != Collective::barrier) distances.least_time = distances.least_steps * options.least_step;
  if (distances.least_time > 0) distances.least_time_of = "steps";
  for (const CutLevel& level : options.cuts) {
    if (level.group.size() != program.ranks) internal_error("cut '{}' is for {} ranks", level.name, level.group.size());
    CutDistance& distance = distances.cuts.emplace_back(least_of(program, level));
    for (const GroupBytes& bytes : crossing(program, level.group)) distance.crossing += bytes.out;
    if (distance.least_time <= distances.least_time) continue;
    distances.least_time = distance.least_time;
    distances.least_time_of = level.name;
  }
}

}  // namespace hcclsim::hccl
