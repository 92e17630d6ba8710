#include "tests/support/collectives/direct_collective.hpp"

#include <utility>

#include "hccl/collective/algorithm/builder.hpp"

namespace hcclsim::test {

using namespace hccl;

bool DirectCollective::suits(const Operation& operation) {
  const bool in_the_way = operation.collective == Collective::allreduce || counts_pairs(operation.collective);
  return !operation.in_place || !in_the_way;
}

DirectCollective::DirectCollective(const Operation& operation) : operation_(operation), ranks_(operation.ranks) {
  for (Rank rank = 0; rank < operation.ranks; ++rank) write(rank);
}

Peer DirectCollective::peer(Rank rank) {
  // Group 0 is all ranks, group r + 1 rank r alone.
  return {Peer::Kind::offset, static_cast<std::uint16_t>(rank + 1), {}};
}

Range DirectCollective::block(Buffer buffer, Rank block) const {
  Range range{buffer, {}, {}, 0};
  if (operation_.blocks_in(buffer) > 1) {
    range.cuts.push_back(
        {.kind = Cut::Kind::block, .parts = operation_.blocks(), .index = {static_cast<std::int32_t>(block), 0, 0, 0}});
  }
  return range;
}

std::vector<DirectCollective::Need> DirectCollective::needs(Rank rank) const {
  std::vector<Need> all;
  const bool at_root = rank == operation_.root;
  const auto from_all = [&](auto&& block_of, auto&& place_of) {
    for (Rank source = 0; source < operation_.ranks; ++source)
      all.push_back({source, block_of(source), place_of(source)});
  };
  const auto zero = [](Rank) { return Rank{0}; };
  const auto here = [=](Rank) { return rank; };
  const auto theirs = [](Rank source) { return source; };
  switch (operation_.collective) {
    case Collective::allreduce:
      from_all(zero, zero);
      break;
    case Collective::reduce:
      if (at_root) from_all(zero, zero);
      break;
    case Collective::reduce_scatter:
      from_all(here, here);
      break;
    case Collective::broadcast:
      all.push_back({operation_.root, 0, 0});
      break;
    case Collective::scatter:
      all.push_back({operation_.root, rank, rank});
      break;
    case Collective::allgather:
      from_all(theirs, theirs);
      break;
    case Collective::gather:
      if (at_root) from_all(theirs, theirs);
      break;
    case Collective::send_recv:
      if (operation_.counts.empty()) {
        all.push_back({(rank + operation_.ranks - 1) % operation_.ranks, 0, 0});
        break;
      }
      [[fallthrough]];
    case Collective::alltoall:
      from_all(here, theirs);
      break;
    case Collective::barrier:
      break;
  }
  return all;
}

void DirectCollective::write(Rank rank) {
  DirectRank& made = ranks_[rank];
  const Buffer from = operation_.in_place ? Buffer::output : Buffer::input;
  for (const Need& need : needs(rank)) {
    const Range source = block(from, need.block);
    const Range destination = block(Buffer::output, need.to);
    if (need.source != rank) {
      const TaskKind kind = reduces(operation_.collective) ? TaskKind::read_reduce : TaskKind::read;
      made.reads.push_back(transfer(kind, peer(need.source), source, destination));
    } else if (!operation_.in_place) {
      made.own.push_back(copy(source, destination));
    }
  }
  for (Rank other = 0; other < operation_.ranks; ++other) {
    if (other == rank) continue;
    const auto ranks = static_cast<std::int32_t>(operation_.ranks);
    const auto mine = static_cast<std::int32_t>(rank);
    const auto theirs = static_cast<std::int32_t>(other);
    made.ready_posts.push_back(post(peer(other), {mine}));
    made.ready_waits.push_back(wait({theirs}));
    made.read_posts.push_back(post(peer(other), {ranks + mine}));
    made.read_waits.push_back(wait({ranks + theirs}));
  }
}

Schedule DirectCollective::schedule() const {
  Builder builder(operation_, "direct");
  builder.add_group(Group::block(operation_.ranks));
  for (Rank rank = 0; rank < operation_.ranks; ++rank) builder.add_group(Group::ordered(operation_.ranks, {rank}));
  builder.reserve_notifies(2 * operation_.ranks);
  Stage& stage = builder.add_stage("direct");
  for (Rank rank = 0; rank < operation_.ranks; ++rank) {
    const DirectRank& made = ranks_[rank];
    Loop loop;
    for (const std::vector<Task>* tasks :
         {&made.own, &made.ready_posts, &made.ready_waits, &made.reads, &made.read_posts, &made.read_waits}) {
      loop.tasks.insert(loop.tasks.end(), tasks->begin(), tasks->end());
    }
    stage.strands.push_back({.group = static_cast<std::uint16_t>(rank + 1), .loops = {std::move(loop)}});
  }
  return std::move(builder).finish();
}

}  // namespace hcclsim::test
