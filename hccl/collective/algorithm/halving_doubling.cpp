#include "hccl/collective/algorithm/halving_doubling.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "hccl/collective/algorithm/steps.hpp"

namespace hcclsim::hccl {
namespace {

/// Exchange with the position whose bit `bit` differs.
std::vector<Task> exchange(std::uint16_t group, Linear bit, Linear ready, Linear written, TaskKind kind,
                           const Range& source, const Range& destination) {
  const Peer peer{Peer::Kind::flip, group, bit};
  return step(peer, peer, ready, written, transfer(kind, peer, source, destination));
}

std::int32_t bits_of(Rank size) { return static_cast<std::int32_t>(std::bit_width(size)) - 1; }

/// The slices that a member of `group`, or its peer in the last halving, keeps after `halvings` halvings.
std::vector<Cut> window(const Builder& builder, const Level& level, std::uint16_t group, Linear halvings, bool peer) {
  return append(
      level.parent,
      {.kind = Cut::Kind::halving, .peer = peer, .group = group, .parts = builder.size(group), .index = halvings});
}

/// Halving among the 2^k members of `group`. Every round has its own peer and so its own slots.
Loop halve(Builder& builder, const Level& level, std::uint16_t group) {
  const std::int32_t bits = bits_of(builder.size(group));
  const std::int32_t first = builder.reserve_notifies(static_cast<std::uint32_t>(2 * bits));
  const Linear ready{first, 0, 2, 0};
  const Linear written{first + 1, 0, 2, 0};
  const Linear low_bit_first{0, 0, 1, 0};
  const std::vector<Cut> theirs = window(builder, level, group, {1, 0, 1, 0}, true);
  const std::vector<Cut> mine = window(builder, level, group, {1, 0, 1, 0}, false);
  Loop loop{.rounds = {bits}};
  if (level.inline_reduce) {
    loop.tasks = exchange(group, low_bit_first, ready, written, TaskKind::write_reduce, output(theirs), output(theirs));
    return loop;
  }
  const Bytes stride = builder.reserve_scratch(1, theirs);
  loop.tasks =
      exchange(group, low_bit_first, ready, written, TaskKind::write, output(theirs), scratch(theirs, {}, stride));
  loop.tasks.push_back(reduce(scratch(mine, {}, stride), output(mine), true));
  return loop;
}

Loop widen(Builder& builder, const Level& level, std::uint16_t group) {
  const std::int32_t bits = bits_of(builder.size(group));
  const std::int32_t first = builder.reserve_notifies(static_cast<std::uint32_t>(2 * bits));
  const Range complete = output(window(builder, level, group, {bits, 0, -1, 0}, false));
  return {.rounds = {bits},
          .tasks = exchange(group, {bits - 1, 0, -1, 0}, {first, 0, 2, 0}, {first + 1, 0, 2, 0}, TaskKind::write,
                            complete, complete)};
}

/// Divides the members of a level into a core of 2^k members, and members that give their payload to one of the core.
struct Folding {
  Pairs pairs;             ///< givers, and the members of the core that take
  std::vector<Rank> core;  ///< places of its members

  Folding(Rank size, bool even_ones_take) {
    const Rank folded = size - std::bit_floor(size);
    for (Rank pair = 0; pair < folded; ++pair) {
      pairs.from.push_back(2 * pair + (even_ones_take ? 1 : 0));
      pairs.to.push_back(2 * pair + (even_ones_take ? 0 : 1));
    }
    core = pairs.to;
    for (Rank place = 2 * folded; place < size; ++place) core.push_back(place);
  }

  /// With the root in the core.
  static Folding around(Rank size, Rank root) { return {size, root % 2 == 0}; }

  [[nodiscard]] Rank position_in_core(Rank place) const {
    Rank position = 0;
    while (core[position] != place) ++position;
    return position;
  }
};

/// The same as groups.
struct FoldedGroups {
  std::uint16_t givers = 0;
  std::uint16_t takers = 0;
  std::uint16_t core = 0;
};

FoldedGroups add_groups(Builder& builder, const Level& level, const Folding& folding) {
  if (folding.pairs.from.empty()) return {.core = level.group};
  return {.givers = builder.add_part(level.group, folding.pairs.from),
          .takers = builder.add_part(level.group, folding.pairs.to),
          .core = builder.add_part(level.group, folding.core)};
}

Peer pair_in(std::uint16_t group) { return peer_at(group, {}); }

/// Givers write their payload to takers, where it is reduced.
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

/// Givers read the result from takers.
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

/// Gathers the windows of the core's members at its position `root`.
void gather_windows(Builder& builder, const Level& level, const Folding& folding, std::uint16_t group, Rank root) {
  for (std::int32_t bit = bits_of(builder.size(group)) - 1; bit >= 0; --bit) {
    PairWrite write;
    // Those that are left agree with the root above the bit.
    const Rank first = (root >> bit ^ 1U) << bit;
    for (Rank i = 0; i < Rank{1} << bit; ++i) {
      write.pairs.from.push_back(folding.core[first + i]);
      write.pairs.to.push_back(folding.core[(first + i) ^ (Rank{1} << bit)]);
    }
    write.cuts = window(builder, level, group, {bit + 1, 0, 0, 0}, false);
    add_writes(builder, level, "gather", {write});
  }
}

/// Rows of 2^bit adjacent blocks among the 2^k members of a level, by the numbers of the blocks that its parent picks:
/// position x belongs to row x >> bit.
class Rows {
 public:
  Rows(Builder& builder, const Level& level, std::int32_t bit)
      : level_(level), size_(builder.size(level.group)), bit_(bit) {
    const Rank stride = builder.group(level.group).stride() << bit;
    half_ = builder.add_group(Group::block(2, stride));
    pair_ = builder.add_group(Group::block(size_ >> (bit + 1), 2 * stride));
  }

  /// The own row, or the other one of the pair of rows.
  [[nodiscard]] std::vector<Cut> row(bool other) const {
    const std::int32_t length = 1 << bit_;
    const auto blocks = static_cast<std::uint32_t>(length);
    const Cut pair{
        .kind = Cut::Kind::block, .group = pair_, .parts = size_, .count = 2 * blocks, .index = {0, 2 * length, 0, 0}};
    const Cut half{.kind = Cut::Kind::block,
                   .group = half_,
                   .parts = 2 * blocks,
                   .count = blocks,
                   .index = {other ? length : 0, length, 0, 0}};
    return append(append(level_.parent, pair), half);
  }

 private:
  const Level& level_;
  Rank size_;
  std::int32_t bit_;
  std::uint16_t half_ = 0;
  std::uint16_t pair_ = 0;
};

/// Reduce-scatter and all-gather of blocks among a number of members that is not a power of two: exchanges among the
/// core, whose members have their own block and the block of the member that gave them its payload.
class FoldedBlocks {
 public:
  FoldedBlocks(Builder& builder, const Level& level)
      : builder_(builder),
        level_(level),
        size_(builder.size(level.group)),
        folding_(size_, false),
        groups_(add_groups(builder, level, folding_)) {}

  [[nodiscard]] const FoldedGroups& groups() const { return groups_; }
  [[nodiscard]] std::int32_t bits() const { return bits_of(static_cast<Rank>(folding_.core.size())); }

  /// Pairs of rows of 2^bit members of the core exchange blocks: each sends those of the other row, where they are
  /// added, or its own.
  void exchange_rows(const std::string& name, std::int32_t bit, bool reduces) {
    const std::int32_t ready = builder_.reserve_notifies(2);
    const bool by_core = reduces && !level_.inline_reduce;
    if (by_core) builder_.reserve_scratch(1, {});
    const TaskKind kind = reduces && !by_core ? TaskKind::write_reduce : TaskKind::write;
    const Rank length = Rank{1} << bit;
    const auto rows = static_cast<Rank>(folding_.core.size() >> bit);
    std::vector<std::uint16_t> members;
    for (Rank row = 0; row < rows; ++row) members.push_back(group_of(row * length, length));
    std::vector<Strand> strands;
    for (Rank row = 0; row < rows; ++row) {
      const Peer peer = pair_in(members[row ^ 1U]);
      const std::vector<Cut> own = blocks(members[row], row * length, length);
      const std::vector<Cut> sent = reduces ? blocks(members[row], (row ^ 1U) * length, length) : own;
      const Range landing = by_core ? scratch(sent, {}, 0) : output(sent);
      Loop loop{.tasks = step(peer, peer, {ready}, {ready + 1}, transfer(kind, peer, output(sent), landing))};
      if (by_core) loop.tasks.push_back(reduce(scratch(own, {}, 0), output(own), true));
      strands.push_back({.group = members[row], .loops = {std::move(loop)}});
    }
    builder_.add_stage(name).strands = std::move(strands);
  }

  /// Moves the block of a member that gave its payload away, between it and its partner; `from` is the group of the
  /// senders.
  void pass_block(const std::string& name, std::uint16_t from, bool to_giver) {
    const Cut block{.kind = Cut::Kind::block, .group = from, .parts = size_, .index = {0, 2, 0, 0}};
    const Pairs pairs = to_giver ? Pairs{folding_.pairs.to, folding_.pairs.from} : folding_.pairs;
    add_writes(builder_, level_, name, {{pairs, append(level_.parent, block)}});
  }

 private:
  [[nodiscard]] std::uint16_t group_of(Rank first, Rank count) {
    const auto begin = folding_.core.begin() + first;
    return builder_.add_part(level_.group, {begin, begin + count});
  }
  /// First block of position `position` of the core: the first ones have two each.
  [[nodiscard]] Rank start(Rank position) const {
    return position + std::min(position, static_cast<Rank>(folding_.pairs.to.size()));
  }
  [[nodiscard]] std::vector<Cut> blocks(std::uint16_t group, Rank first, Rank count) const {
    return append(level_.parent, {.kind = Cut::Kind::block,
                                  .group = group,
                                  .parts = size_,
                                  .count = start(first + count) - start(first),
                                  .index = {static_cast<std::int32_t>(start(first))}});
  }

  Builder& builder_;
  const Level& level_;
  Rank size_;
  Folding folding_;
  FoldedGroups groups_;
};

void halve_folded(Builder& builder, const Level& level) {
  FoldedBlocks blocks(builder, level);
  fold(builder, level, blocks.groups().givers, blocks.groups().takers);
  for (std::int32_t bit = blocks.bits() - 1; bit >= 0; --bit) blocks.exchange_rows("halving", bit, true);
  blocks.pass_block("unfold", blocks.groups().takers, true);
}

void double_folded(Builder& builder, const Level& level) {
  FoldedBlocks blocks(builder, level);
  blocks.pass_block("fold", blocks.groups().givers, false);
  for (std::int32_t bit = 0; bit < blocks.bits(); ++bit) blocks.exchange_rows("doubling", bit, false);
  unfold(builder, level, blocks.groups().takers, blocks.groups().givers);
}

}  // namespace

void halving_doubling_stages(Builder& builder, const Level& level) {
  const Folding folding(builder.size(level.group), false);
  const FoldedGroups groups = add_groups(builder, level, folding);
  const bool folds = !folding.pairs.from.empty();
  if (folds) fold(builder, level, groups.givers, groups.takers);
  if (folding.core.size() > 1) {
    Loop halving = halve(builder, level, groups.core);
    Loop doubling = widen(builder, level, groups.core);
    builder.add_stage("halving and doubling").strands = {
        {.group = groups.core, .loops = {std::move(halving), std::move(doubling)}}};
  }
  if (folds) unfold(builder, level, groups.takers, groups.givers);
}

void halving_doubling_reduce_stages(Builder& builder, const Level& level, Rank root) {
  const Folding folding = Folding::around(builder.size(level.group), root);
  const FoldedGroups groups = add_groups(builder, level, folding);
  if (!folding.pairs.from.empty()) fold(builder, level, groups.givers, groups.takers);
  if (folding.core.size() == 1) return;
  Loop halving = halve(builder, level, groups.core);
  builder.add_stage("halving").strands = {{.group = groups.core, .loops = {std::move(halving)}}};
  gather_windows(builder, level, folding, groups.core, folding.position_in_core(root));
}

void halving_doubling_broadcast_stages(Builder& builder, const Level& level, Rank root) {
  const Folding folding = Folding::around(builder.size(level.group), root);
  const auto size = static_cast<Rank>(folding.core.size());
  const Rank start = folding.position_in_core(root);
  for (Rank distance = size / 2; distance > 0; distance /= 2) {
    PairWrite write{{}, level.parent};
    for (Rank position = start % (2 * distance); position < size; position += 2 * distance) {
      write.pairs.from.push_back(folding.core[position]);
      write.pairs.to.push_back(folding.core[position ^ distance]);
    }
    add_writes(builder, level, "broadcast", {write});
  }
  if (!folding.pairs.from.empty()) {
    add_writes(builder, level, "unfold", {{{folding.pairs.to, folding.pairs.from}, level.parent}});
  }
}

void halving_doubling_reduce_scatter_stages(Builder& builder, const Level& level) {
  if (!std::has_single_bit(builder.size(level.group))) {
    halve_folded(builder, level);
    return;
  }
  std::vector<Loop> loops;
  for (std::int32_t bit = bits_of(builder.size(level.group)) - 1; bit >= 0; --bit) {
    const Rows rows(builder, level, bit);
    const std::int32_t ready = builder.reserve_notifies(2);
    const Range theirs = output(rows.row(true));
    const Range landing = level.inline_reduce ? theirs : scratch(rows.row(true), {}, 0);
    const TaskKind kind = level.inline_reduce ? TaskKind::write_reduce : TaskKind::write;
    Loop loop{.tasks = exchange(level.group, {bit}, {ready}, {ready + 1}, kind, theirs, landing)};
    if (!level.inline_reduce) {
      builder.reserve_scratch(1, {});
      loop.tasks.push_back(reduce(scratch(rows.row(false), {}, 0), output(rows.row(false)), true));
    }
    loops.push_back(std::move(loop));
  }
  add_loops(builder, level, "halving", std::move(loops));
}

void halving_doubling_all_gather_stages(Builder& builder, const Level& level) {
  if (!std::has_single_bit(builder.size(level.group))) {
    double_folded(builder, level);
    return;
  }
  std::vector<Loop> loops;
  for (std::int32_t bit = 0; bit < bits_of(builder.size(level.group)); ++bit) {
    const std::int32_t ready = builder.reserve_notifies(2);
    const Range own = output(Rows(builder, level, bit).row(false));
    loops.push_back({.tasks = exchange(level.group, {bit}, {ready}, {ready + 1}, TaskKind::write, own, own)});
  }
  add_loops(builder, level, "doubling", std::move(loops));
}

}  // namespace hcclsim::hccl
