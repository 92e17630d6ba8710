#include "hccl/collective/algorithm/steps.hpp"

#include <bit>

namespace hcclsim::hccl {
namespace {

/// The tasks of a step in which all positions take part.
std::vector<Task> shift_tasks(Builder& builder, std::uint16_t group, std::int32_t offset, TaskKind kind,
                              const Range& source, const Range& destination) {
  const std::int32_t ready = builder.reserve_notifies(2);
  const Peer reader = peer_at(group, {offset});
  return step(peer_at(group, {-offset}), reader, {ready}, {ready + 1}, transfer(kind, reader, source, destination));
}

}  // namespace

std::int32_t steps_to_all(Rank size) { return static_cast<std::int32_t>(std::bit_width(size - 1)); }

Loop shift(Builder& builder, const Level& level, std::int32_t offset, const std::vector<Cut>& sent) {
  return {.tasks = shift_tasks(builder, level.group, offset, TaskKind::write, output(sent), output(sent))};
}

Loop shift_and_reduce(Builder& builder, const Level& level, std::int32_t offset, const std::vector<Cut>& sent,
                      const std::vector<Cut>& received) {
  if (level.inline_reduce) {
    return {.tasks = shift_tasks(builder, level.group, offset, TaskKind::write_reduce, output(sent), output(sent))};
  }
  // All pieces land in scratch memory at the places that they have in the payload.
  builder.reserve_scratch(1, {});
  Loop loop{.tasks = shift_tasks(builder, level.group, offset, TaskKind::write, output(sent), scratch(sent, {}, 0))};
  loop.tasks.push_back(reduce(scratch(received, {}, 0), output(received), true));
  return loop;
}

void add_loops(Builder& builder, const Level& level, const std::string& name, std::vector<Loop> loops) {
  if (loops.empty()) return;
  builder.add_stage(name).strands = {{.group = level.group, .loops = std::move(loops)}};
}

void add_writes(Builder& builder, const Level& level, const std::string& name, const std::vector<PairWrite>& writes) {
  const std::int32_t ready = builder.reserve_notifies(2);
  const std::int32_t written = ready + 1;
  std::vector<Strand> strands;
  for (const PairWrite& write : writes) {
    const std::uint16_t from = builder.add_part(level.group, write.pairs.from);
    const std::uint16_t to = builder.add_part(level.group, write.pairs.to);
    const Peer sender = peer_at(from, {});
    const Peer receiver = peer_at(to, {});
    const Range range = output(write.cuts);
    const Loop sends{
        .tasks = {wait({ready}), transfer(TaskKind::write, receiver, range, range), post(receiver, {written})}};
    const Loop receives{.tasks = {post(sender, {ready}), wait({written})}};
    strands.push_back({.group = from, .loops = {sends}});
    strands.push_back({.group = to, .loops = {receives}});
  }
  builder.add_stage(name).strands = std::move(strands);
}

void add_scatter(Builder& builder, const Level& level, const std::string& name, const std::vector<Rank>& order,
                 const std::vector<std::vector<TreeWrite>>& stages) {
  if (stages.empty()) return;
  const Level from_root{builder.add_part(level.group, order), level.parent, level.inline_reduce};
  for (const std::vector<TreeWrite>& stage : stages) {
    std::vector<PairWrite> writes;
    for (const TreeWrite& tree : stage) {
      PairWrite write;
      for (Rank i = 0; i < tree.senders; ++i) {
        const Rank sender = tree.first + i * tree.sender_step;
        write.pairs.from.push_back(order[sender]);
        write.pairs.to.push_back(order[sender + tree.distance]);
      }
      const Linear first{static_cast<std::int32_t>(tree.distance), 1, 0, 0};
      write.cuts = builder.share(from_root, first, tree.shares, tree.share_step);
      writes.push_back(std::move(write));
    }
    add_writes(builder, level, name, writes);
  }
}

}  // namespace hcclsim::hccl
