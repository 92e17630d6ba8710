#include "hccl/collective/halving_doubling.hpp"

#include <bit>

namespace hcclsim::hccl {
namespace {

Peer pair_in(std::uint16_t group) { return {Peer::Kind::offset, group, {0, 0, 0, 0}}; }

/// `from` and `to` pair up position by position: `from` writes its payload to `to`, where it is reduced.
void fold(Builder& builder, const Level& level, std::uint16_t from, std::uint16_t to) {
  const std::int32_t ready = builder.reserve_notifies(2);
  const std::int32_t written = ready + 1;
  const Range all = output(level.parent);
  const TaskKind kind = level.inline_reduce ? TaskKind::write_reduce : TaskKind::write;
  const Range landing = level.inline_reduce ? all : scratch(level.parent, {}, builder.reserve_scratch(1, level.parent));

  Loop sender;
  sender.tasks = {wait({ready}), transfer(kind, pair_in(to), all, landing), post(pair_in(to), {written})};
  Loop receiver;
  receiver.tasks = {post(pair_in(from), {ready}), wait({written})};
  if (!level.inline_reduce) receiver.tasks.push_back(reduce(landing, all, true));
  builder.add_stage("fold").strands = {{.group = from, .loops = {sender}}, {.group = to, .loops = {receiver}}};
}

/// `to` reads the result from its partner `from`.
void unfold(Builder& builder, const Level& level, std::uint16_t from, std::uint16_t to) {
  const std::int32_t ready = builder.reserve_notifies(2);
  const std::int32_t read = ready + 1;
  const Range all = output(level.parent);
  Loop owner;
  owner.tasks = {post(pair_in(to), {ready}), wait({read})};
  Loop reader;
  reader.tasks = {wait({ready}), transfer(TaskKind::read, pair_in(from), all, all), post(pair_in(from), {read})};
  builder.add_stage("unfold").strands = {{.group = from, .loops = {owner}}, {.group = to, .loops = {reader}}};
}

/// Exchange with the position whose bit `bit` differs.
std::vector<Task> exchange(std::uint16_t group, Linear bit, Linear ready, Linear written, TaskKind kind,
                           const Range& source, const Range& destination) {
  const Peer peer{Peer::Kind::flip, group, bit};
  return {post(peer, ready), wait(ready), transfer(kind, peer, source, destination), post(peer, written),
          wait(written)};
}

/// Halving and doubling among the 2^k members of `group`.
void halve_and_double(Builder& builder, const Level& level, std::uint16_t group) {
  const Rank size = builder.size(group);
  const auto bits = static_cast<std::int32_t>(std::bit_width(size)) - 1;
  if (bits == 0) return;
  const auto window = [&](Linear halvings, bool peer) {
    return append(level.parent,
                  {.kind = Cut::Kind::halving, .peer = peer, .group = group, .parts = size, .index = halvings});
  };
  // Every round has a peer of its own, hence slots of its own.
  const std::int32_t first = builder.reserve_notifies(static_cast<std::uint32_t>(4 * bits));
  const Linear ready{first, 0, 2, 0};
  const Linear written{first + 1, 0, 2, 0};

  Loop halving{.rounds = {bits}};
  const std::vector<Cut> theirs = window({1, 0, 1, 0}, true);
  const std::vector<Cut> mine = window({1, 0, 1, 0}, false);
  const Linear low_bit_first{0, 0, 1, 0};
  if (level.inline_reduce) {
    halving.tasks =
        exchange(group, low_bit_first, ready, written, TaskKind::write_reduce, output(theirs), output(theirs));
  } else {
    const Bytes stride = builder.reserve_scratch(1, theirs);
    halving.tasks =
        exchange(group, low_bit_first, ready, written, TaskKind::write, output(theirs), scratch(theirs, {}, stride));
    halving.tasks.push_back(reduce(scratch(mine, {}, stride), output(mine), true));
  }

  Loop doubling{.rounds = {bits}};
  const std::vector<Cut> complete = window({bits, 0, -1, 0}, false);
  doubling.tasks = exchange(group, {bits - 1, 0, -1, 0}, {first + 2 * bits, 0, 2, 0}, {first + 2 * bits + 1, 0, 2, 0},
                            TaskKind::write, output(complete), output(complete));
  builder.add_stage("halving and doubling").strands = {{.group = group, .loops = {halving, doubling}}};
}

}  // namespace

void halving_doubling_stages(Builder& builder, const Level& level) {
  const Rank size = builder.size(level.group);
  const Rank core = std::bit_floor(size);
  const Rank folded = size - core;
  if (folded == 0) {
    halve_and_double(builder, level, level.group);
    return;
  }
  std::vector<Rank> even;
  std::vector<Rank> odd;
  for (Rank pair = 0; pair < folded; ++pair) {
    even.push_back(2 * pair);
    odd.push_back(2 * pair + 1);
  }
  std::vector<Rank> members = odd;
  for (Rank rank = 2 * folded; rank < size; ++rank) members.push_back(rank);
  const Rank stride = builder.stride(level.group);
  const std::uint16_t evens = builder.add_group(Group::ordered(size, even, stride));
  const std::uint16_t odds = builder.add_group(Group::ordered(size, odd, stride));
  const std::uint16_t core_group = builder.add_group(Group::ordered(size, members, stride));
  fold(builder, level, evens, odds);
  halve_and_double(builder, level, core_group);
  unfold(builder, level, odds, evens);
}

Schedule halving_doubling_allreduce(const Operation& operation, bool inline_reduce) {
  Builder builder(operation, "halving-doubling");
  const Level level{builder.add_group(Group::block(operation.ranks)), {}, inline_reduce};
  halving_doubling_stages(builder, level);
  return std::move(builder).finish();
}

}  // namespace hcclsim::hccl
