#include "hccl/collective/algorithm/mesh.hpp"

#include <utility>

#include "hccl/collective/algorithm/rooted/rooted.hpp"
#include "hccl/collective/algorithm/rooted/star.hpp"

namespace hcclsim::hccl {
namespace {

/// The notifies that queue q of a rank and its peer, `offset` positions further, exchange around a read.
struct Pairing {
  std::uint16_t group;
  std::uint32_t queues;
  std::int32_t first;  ///< slots of queue q: first + 2q "you may read", the next "I have read"

  /// A strand of `members`, whose queue q finds its peer `offset` positions further, with `middle` between the words.
  [[nodiscard]] Strand strand(std::uint16_t members, Linear offset, const std::vector<Task>& middle) const {
    const Peer peer = peer_at(group, offset);
    // The peer's queue for us is p−2−q.
    const std::int32_t last = first + 2 * (static_cast<std::int32_t>(queues) - 1);
    Loop loop{.tasks = {post(peer, {last, 0, 0, -2}), wait({first, 0, 0, 2})}};
    loop.tasks.insert(loop.tasks.end(), middle.begin(), middle.end());
    loop.tasks.push_back(post(peer, {last + 1, 0, 0, -2}));
    loop.tasks.push_back(wait({first + 1, 0, 0, 2}));
    return {.group = members, .first_queue = 0, .queues = queues, .loops = {loop}};
  }
};

Pairing pair_all(Builder& builder, std::uint16_t group) {
  const std::uint32_t queues = builder.size(group) - 1;
  return {group, queues, builder.reserve_notifies(2 * queues)};
}

}  // namespace

Strand read_from_all(Builder& builder, std::uint16_t group, const Range& source, const Range& destination) {
  const Linear offset{1, 0, 0, 1};
  return pair_all(builder, group)
      .strand(group, offset, {transfer(TaskKind::read, peer_at(group, offset), source, destination)});
}

void mesh_reduce_scatter(Builder& builder, const Level& level) {
  const Rank others = builder.size(level.group) - 1;
  if (others == 0) return;
  const std::vector<Cut> own = builder.share(level, {0, 1, 0, 0});
  const Bytes stride = builder.reserve_scratch(others, own);
  Strand reads = read_from_all(builder, level.group, output(own), scratch(own, {0, 0, 0, 1}, stride));
  builder.add_stage("mesh reduce-scatter: read").strands.push_back(std::move(reads));

  Loop loop{.rounds = {static_cast<std::int32_t>(others)}};
  loop.tasks = {reduce(scratch(own, {0, 0, 1, 0}, stride), output(own), !level.inline_reduce)};
  builder.add_stage("mesh reduce-scatter: reduce").strands.push_back({.group = level.group, .loops = {loop}});
}

void mesh_all_gather(Builder& builder, const Level& level) {
  if (builder.size(level.group) == 1) return;
  // Queue q reads slice x+1+q, complete at its owner.
  const std::vector<Cut> theirs = builder.share(level, {1, 1, 0, 1});
  Strand reads = read_from_all(builder, level.group, output(theirs), output(theirs));
  builder.add_stage("mesh all-gather").strands.push_back(std::move(reads));
}

void mesh_broadcast(Builder& builder, const Level& level) {
  if (builder.size(level.group) == 1) return;
  star_scatter(builder, level);
  // An all-gather in which the root, which has everything, does not read. Position y of the others is position y + 1.
  const Pairing pairing = pair_all(builder, level.group);
  const Linear offset{2, 0, 0, 1};
  const Range theirs = output(builder.share(level, {1, 1, 0, 1}));
  const Task read = transfer(TaskKind::read, peer_at(level.group, offset), theirs, theirs);
  const std::uint16_t root = root_of(builder, level.group);
  const std::uint16_t others = others_of(builder, level.group);
  builder.add_stage("mesh all-gather").strands = {pairing.strand(root, {1, 0, 0, 1}, {}),
                                                  pairing.strand(others, offset, {read})};
}

void mesh_reduce(Builder& builder, const Level& level) {
  mesh_reduce_scatter(builder, level);
  star_gather(builder, level);
}

Schedule mesh_one_shot_allreduce(const Operation& operation, bool inline_reduce) {
  Builder builder(operation, "mesh-one-shot");
  const std::uint16_t group = builder.add_group(Group::block(operation.ranks));
  if (operation.ranks == 1) return std::move(builder).finish();
  const auto size = static_cast<std::int32_t>(operation.ranks);
  const Bytes stride = builder.reserve_scratch(operation.ranks - 1, {});
  Strand reads = read_from_all(builder, group, output({}), scratch({}, {0, 0, 0, 1}, stride));
  builder.add_stage("read all").strands.push_back(std::move(reads));

  // The payload of rank j is in slot j−x−1 (modulo p). The sum is formed in the order of the ranks: first those below x
  // into the slot of rank 0, then this slot into the rank's own payload, then those above x.
  const bool by_core = !inline_reduce;
  const Range of_rank_0 = scratch({}, {size - 1, -1, 0, 0}, stride);
  Loop below{.rounds = {-1, 1, 0, 0}};
  below.tasks = {reduce(scratch({}, {size, -1, 1, 0}, stride), of_rank_0, by_core)};
  Loop own{.rounds = {0, 1, 0, 0}, .most_rounds = 1};
  own.tasks = {reduce(of_rank_0, output({}), by_core)};
  Loop above{.rounds = {size - 1, -1, 0, 0}};
  above.tasks = {reduce(scratch({}, {0, 0, 1, 0}, stride), output({}), by_core)};
  builder.add_stage("reduce in rank order").strands.push_back({.group = group, .loops = {below, own, above}});
  return std::move(builder).finish();
}

std::vector<Strand> mesh_blocks(Builder& builder, const Level& level, const Alltoall& blocks) {
  const Rank size = builder.size(level.group);
  std::vector<Strand> strands;
  if (size > 1) {
    strands.push_back(read_from_all(builder, level.group, blocks.source, blocks.destination({1, 1, 0, 1})));
  }
  // One more queue copies what a rank has for itself.
  strands.push_back({.group = level.group, .first_queue = size - 1, .loops = {{.tasks = {blocks.own_copy()}}}});
  return strands;
}

}  // namespace hcclsim::hccl
