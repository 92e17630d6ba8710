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

/// Bytes that rank `from` has for rank `to`, of alltoall and send-recv.
Bytes bytes_between(const Operation& operation, Rank from, Rank to) {
  const BlockCounts& counts = operation.counts;
  const Bytes element = size_of(operation.type);
  if (!counts.empty()) return (counts.offset(from, to + 1) - counts.offset(from, to)) * element;
  const bool to_next = operation.collective == Collective::send_recv;
  return !to_next || to == (from + 1) % operation.ranks ? operation.elements * element : 0;
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

/// Bytes that transfers of the program carry, by source and destination.
std::map<std::pair<Rank, Rank>, Bytes> carried(const TaskProgram& program) {
  std::map<std::pair<Rank, Rank>, Bytes> bytes;
  visit_transfers(program, [&](const ProgramTask& /*task*/, Rank from, Rank to, Bytes length) {
    bytes[{from, to}] += length;
  });
  return bytes;
}

Seconds time_of(Bytes bytes, BytesPerSecond speed) { return bytes == 0 ? 0 : static_cast<double>(bytes) / speed; }

BytesPerSecond sum_of(const std::vector<BytesPerSecond>& speeds) {
  BytesPerSecond sum = 0;
  for (const BytesPerSecond speed : speeds) sum += speed;
  return sum;
}

CutDistance distance_of(const TaskProgram& program, const CutLevel& level) {
  CutDistance distance{.name = level.name, .groups = static_cast<std::uint32_t>(level.out.size())};
  const std::vector<GroupBytes> needed = least_crossing(program, level.group);
  GroupBytes in_all;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    in_all.out += needed[i].out;
    in_all.in += needed[i].in;
    distance.least_time =
        std::max({distance.least_time, time_of(needed[i].out, level.out[i]), time_of(needed[i].in, level.in[i])});
  }
  distance.least = std::max(in_all.out, in_all.in);
  if (program.collective == Collective::allreduce && needed.size() > 1) {
    distance.least = std::max(distance.least, 2 * (needed.size() - 1) * program.payload());
  }
  distance.least_time = std::max(
      {distance.least_time, time_of(distance.least, sum_of(level.out)), time_of(distance.least, sum_of(level.in))});
  for (const GroupBytes& bytes : crossing(program, level.group)) distance.crossing += bytes.out;
  return distance;
}

}  // namespace

std::vector<GroupBytes> least_crossing(const Operation& operation, const Groups& group) {
  std::vector<GroupBytes> least(count_of(group));
  if (least.size() < 2) return least;
  if (operation.collective == Collective::alltoall || operation.collective == Collective::send_recv) {
    for (Rank from = 0; from < operation.ranks; ++from) {
      for (Rank to = 0; to < operation.ranks; ++to) {
        add(least, group, from, to, from == to ? 0 : bytes_between(operation, from, to));
      }
    }
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
    if (!program.rotates) {
      add(found, group, ends.first, ends.second, bytes);
      continue;
    }
    // Rank 0 stands for all: the same between all ranks of this distance.
    for (Rank rank = 0; rank < program.ranks; ++rank) {
      add(found, group, (ends.first + rank) % program.ranks, (ends.second + rank) % program.ranks, bytes);
    }
  }
  return found;
}

void add_cuts(const TaskProgram& program, const CheckOptions& options, Distances& distances) {
  // The steps of a barrier are no transfers.
  if (program.collective != Collective::barrier) distances.least_time = distances.least_steps * options.least_step;
  if (distances.least_time > 0) distances.least_time_of = "steps";
  for (const CutLevel& level : options.cuts) {
    if (level.group.size() != program.ranks) internal_error("cut '{}' is for {} ranks", level.name, level.group.size());
    distances.cuts.push_back(distance_of(program, level));
    if (distances.cuts.back().least_time <= distances.least_time) continue;
    distances.least_time = distances.cuts.back().least_time;
    distances.least_time_of = level.name;
  }
}

}  // namespace hcclsim::hccl
