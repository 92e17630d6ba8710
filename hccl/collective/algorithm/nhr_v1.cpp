#include "hccl/collective/algorithm/nhr_v1.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace hcclsim::hccl {
namespace {

/// GridRings of the same size side by side. Lane i holds member i of each of them, ring by ring.
struct GridRings {
  std::vector<std::vector<Rank>> lanes;
  /// What member `owner` of a ring is responsible for, as a lane with this group sees it; nothing if it is not.
  std::function<std::optional<std::vector<Cut>>(Rank owner, std::uint16_t group)> share;
  /// The member whose data is no longer needed: what it receives replaces its data, and it starts nothing.
  std::optional<Rank> spent{};

  [[nodiscard]] Rank size() const { return static_cast<Rank>(lanes.size()); }
};

enum class Phase : std::uint8_t { reduce_scatter, all_gather };

/// Whose share lane i sends in a round, if it sends one.
std::optional<Rank> sent_in(const GridRings& rings, Phase phase, Rank lane, Rank round) {
  const Rank size = rings.size();
  const Rank behind = phase == Phase::reduce_scatter ? round + 1 : round;
  const Rank owner = (lane + size - behind) % size;
  if (!rings.share(owner, 0).has_value()) return {};
  if (phase == Phase::reduce_scatter && round == 0 && rings.spent == lane) return {};
  return owner;
}

/// The rounds of one lane; `groups` are those of all lanes. A position has the same neighbours in all of them, so two
/// notify slots are enough: `ready` and the next one.
std::vector<Loop> rounds_of(Builder& builder, const Level& level, const GridRings& rings, Phase phase,
                            std::int32_t ready, const std::vector<std::uint16_t>& groups, Rank lane) {
  const Rank size = rings.size();
  const Rank before = (lane + size - 1) % size;
  const Rank after = (lane + 1) % size;
  const Peer left = peer_at(groups[before], {});
  const Peer right = peer_at(groups[after], {});
  const auto adds = [&](Rank receiver) { return phase == Phase::reduce_scatter && rings.spent != receiver; };
  std::vector<Loop> loops;
  for (Rank round = 0; round + 1 < size; ++round) {
    const std::optional<Rank> sends = sent_in(rings, phase, lane, round);
    const std::optional<Rank> gets = sent_in(rings, phase, before, round);
    Loop loop;
    if (gets) loop.tasks.push_back(post(left, {ready}));
    if (sends) {
      const std::vector<Cut> cuts = *rings.share(*sends, groups[lane]);
      const bool in_place = !adds(after) || level.inline_reduce;
      loop.tasks.push_back(wait({ready}));
      loop.tasks.push_back(transfer(adds(after) && in_place ? TaskKind::write_reduce : TaskKind::write, right,
                                    output(cuts), in_place ? output(cuts) : scratch(cuts, {}, 0)));
      loop.tasks.push_back(post(right, {ready + 1}));
    }
    if (gets) {
      loop.tasks.push_back(wait({ready + 1}));
      if (adds(lane) && !level.inline_reduce) {
        const std::vector<Cut> cuts = *rings.share(*gets, groups[lane]);
        builder.reserve_scratch(1, {});
        loop.tasks.push_back(reduce(scratch(cuts, {}, 0), output(cuts), true));
      }
    }
    if (!loop.tasks.empty()) loops.push_back(std::move(loop));
  }
  return loops;
}

/// A stage of all rings at the same time; none without a ring of two.
void add_rings(Builder& builder, const Level& level, const std::string& name, Phase phase,
               const std::vector<GridRings>& all) {
  const std::int32_t ready = builder.reserve_notifies(2);
  std::vector<Strand> strands;
  for (const GridRings& rings : all) {
    if (rings.size() < 2 || rings.lanes.front().empty()) continue;
    std::vector<std::uint16_t> groups;
    for (const std::vector<Rank>& lane : rings.lanes) {
      groups.push_back(builder.add_part(level.group, lane));
    }
    for (Rank lane = 0; lane < rings.size(); ++lane) {
      strands.push_back({.group = groups[lane], .loops = rounds_of(builder, level, rings, phase, ready, groups, lane)});
    }
  }
  if (!strands.empty()) builder.add_stage(name).strands = std::move(strands);
}

/// The rings of the rows `first` … `last`−1, which are equally long; what their members are responsible for is set by
/// the caller.
GridRings rows_of(const RingGrid& grid, Rank first, Rank last) {
  GridRings rings;
  if (first == last) return rings;
  rings.lanes.resize(grid.length(first));
  for (Rank column = 0; column < grid.length(first); ++column) {
    for (Rank row = first; row < last; ++row) rings.lanes[column].push_back(grid.start(row) + column);
  }
  return rings;
}

/// The rings of the columns `first` … `last`−1, without extra ranks.
GridRings columns_of(const RingGrid& grid, Rank first, Rank last) {
  GridRings rings;
  rings.lanes.resize(grid.rows);
  for (Rank row = 0; row < grid.rows; ++row) {
    for (Rank column = first; column < last; ++column) rings.lanes[row].push_back(grid.start(row) + column);
  }
  return rings;
}

/// Blocks of a payload with a block for every rank.
Cut blocks(std::uint16_t group, Rank ranks, Linear index, Rank count) {
  return {.kind = Cut::Kind::block, .group = group, .parts = ranks, .count = count, .index = index};
}

/// GridRings of all rows, whose members are responsible for their own blocks.
std::vector<GridRings> block_rows(const Level& level, const RingGrid& grid, Rank ranks) {
  std::vector<GridRings> all{rows_of(grid, 0, grid.long_rows), rows_of(grid, grid.long_rows, grid.rows)};
  for (const bool is_long : {true, false}) {
    const Rank first = grid.start(is_long ? 0 : grid.long_rows);
    const auto length = static_cast<std::int32_t>(grid.columns + (is_long ? 1 : 0));
    all[is_long ? 0 : 1].share = [=](Rank owner, std::uint16_t group) -> std::optional<std::vector<Cut>> {
      return append(level.parent, blocks(group, ranks, {static_cast<std::int32_t>(first + owner), length, 0, 0}, 1));
    };
  }
  return all;
}

/// GridRings of all columns, whose members are responsible for the blocks of their rows; extra rank v is the last
/// member in column v.
std::vector<GridRings> block_columns(const Level& level, const RingGrid& grid, Rank ranks) {
  std::vector<GridRings> all{columns_of(grid, 0, grid.long_rows), columns_of(grid, grid.long_rows, grid.columns)};
  if (grid.long_rows > 0) {
    all[0].lanes.emplace_back();
    for (Rank row = 0; row < grid.long_rows; ++row) all[0].lanes.back().push_back(grid.start(row) + grid.columns);
  }
  for (GridRings& rings : all) {
    rings.share = [=](Rank owner, std::uint16_t group) -> std::optional<std::vector<Cut>> {
      if (owner >= grid.rows) return {};
      const auto start = static_cast<std::int32_t>(grid.start(owner));
      return append(level.parent, blocks(group, ranks, {start, 0, 0, 0}, grid.length(owner)));
    };
  }
  return all;
}

/// GridRings of all rows, whose members in the first columns are responsible for a slice.
std::vector<GridRings> slice_rows(const Level& level, const RingGrid& grid) {
  std::vector<GridRings> all{rows_of(grid, 0, grid.long_rows), rows_of(grid, grid.long_rows, grid.rows)};
  for (GridRings& rings : all) {
    rings.share = [=](Rank owner, std::uint16_t group) -> std::optional<std::vector<Cut>> {
      if (owner >= grid.columns) return {};
      const Cut slice{.group = group, .parts = grid.columns, .index = {static_cast<std::int32_t>(owner), 0, 0, 0}};
      return append(level.parent, slice);
    };
  }
  return all;
}

/// GridRings of the columns but for the extra ranks, on the slice of the column.
GridRings slice_columns(const Level& level, const RingGrid& grid) {
  GridRings rings = columns_of(grid, 0, grid.columns);
  rings.share = [=](Rank owner, std::uint16_t group) -> std::optional<std::vector<Cut>> {
    const Cut slice{.group = group, .parts = grid.columns, .index = {0, 1, 0, 0}};
    const Cut part{.group = group, .parts = grid.rows, .index = {static_cast<std::int32_t>(owner), 0, 0, 0}};
    return append(append(level.parent, slice), part);
  };
  return rings;
}

/// Something that lane 0 of a chain passes on to lane `last`.
struct Item {
  Rank last = 0;
  std::function<std::vector<Cut>(std::uint16_t group)> cuts;
};

/// A stage of chains of ranks side by side: every lane passes on the items that it gets, one after the other.
void add_chain(Builder& builder, const Level& level, const std::string& name,
               const std::vector<std::vector<Rank>>& lanes, const std::vector<Item>& items) {
  if (lanes.size() < 2 || items.empty()) return;
  const std::int32_t ready = builder.reserve_notifies(2);
  const std::int32_t written = ready + 1;
  std::vector<std::uint16_t> groups;
  for (const std::vector<Rank>& lane : lanes) {
    groups.push_back(builder.add_part(level.group, lane));
  }
  std::vector<Strand> strands;
  for (Rank lane = 0; lane < groups.size(); ++lane) {
    Loop loop;
    const auto gets = std::count_if(items.begin(), items.end(), [&](const Item& item) { return item.last >= lane; });
    // The next item may come while this one is passed on.
    const auto make_ready = [&] { loop.tasks.push_back(post(peer_at(groups[lane - 1], {}), {ready})); };
    auto to_come = lane > 0 ? gets : 0;
    if (to_come > 0) make_ready();
    for (const Item& item : items) {
      if (to_come > 0 && item.last >= lane) {
        loop.tasks.push_back(wait({written}));
        if (--to_come > 0) make_ready();
      }
      if (item.last > lane) {
        const Peer next = peer_at(groups[lane + 1], {});
        const Range range = output(item.cuts(groups[lane]));
        loop.tasks.push_back(wait({ready}));
        loop.tasks.push_back(transfer(TaskKind::write, next, range, range));
        loop.tasks.push_back(post(next, {written}));
      }
    }
    if (!loop.tasks.empty()) strands.push_back({.group = groups[lane], .loops = {std::move(loop)}});
  }
  builder.add_stage(name).strands = std::move(strands);
}

/// The slices of the columns go around the root's row, the one for the farthest rank first.
void scatter_in_row(Builder& builder, const Level& level, const RingGrid& grid, Rank row, Rank column) {
  const Rank length = grid.length(row);
  std::vector<std::vector<Rank>> lanes;
  std::vector<Item> items;
  for (Rank i = 0; i < length; ++i) {
    lanes.push_back({grid.start(row) + (column + i) % length});
    const Rank last = length - 1 - i;
    const Rank owner = (column + last) % length;
    if (last == 0 || owner >= grid.columns) continue;
    items.push_back({last, [=](std::uint16_t group) {
                       const Linear index{static_cast<std::int32_t>(owner), 0, 0, 0};
                       return append(level.parent, {.group = group, .parts = grid.columns, .index = index});
                     }});
  }
  add_chain(builder, level, "scatter in the root's row", lanes, items);
}

/// Every column hands down its slice from the root's row on.
void broadcast_in_columns(Builder& builder, const Level& level, const RingGrid& grid, Rank row) {
  std::vector<std::vector<Rank>> lanes(grid.rows);
  for (Rank i = 0; i < grid.rows; ++i) {
    for (Rank column = 0; column < grid.columns; ++column) {
      lanes[i].push_back(grid.start((row + i) % grid.rows) + column);
    }
  }
  const Item slice{grid.rows - 1, [=](std::uint16_t group) {
                     return append(level.parent, {.group = group, .parts = grid.columns, .index = {0, 1, 0, 0}});
                   }};
  add_chain(builder, level, "broadcast in columns", lanes, {slice});
}

}  // namespace

RingGrid::RingGrid(Rank ranks) {
  constexpr Rank most_difference = 5;
  Rank root = 1;
  while ((root + 1) * (root + 1) <= ranks) ++root;
  rows = root;
  columns = root;
  while (rows * columns != ranks) {
    if (rows * columns < ranks) {
      ++columns;
    } else {
      --rows;
    }
  }
  if (columns - rows < most_difference) return;
  const Rank left_over = ranks - root * root;
  rows = left_over < root ? root : root + 1;
  columns = root;
  long_rows = ranks - rows * columns;
}

void nhr_v1_allreduce_stages(Builder& builder, const Level& level) {
  const RingGrid grid(builder.size(level.group));
  const std::vector<GridRings> rows = slice_rows(level, grid);
  const std::vector<GridRings> columns{slice_columns(level, grid)};
  add_rings(builder, level, "reduce-scatter in rows", Phase::reduce_scatter, rows);
  add_rings(builder, level, "reduce-scatter in columns", Phase::reduce_scatter, columns);
  add_rings(builder, level, "all-gather in columns", Phase::all_gather, columns);
  add_rings(builder, level, "all-gather in rows", Phase::all_gather, rows);
}

void nhr_v1_reduce_scatter_stages(Builder& builder, const Level& level) {
  const Rank ranks = builder.size(level.group);
  const RingGrid grid(ranks);
  std::vector<GridRings> rows = block_rows(level, grid, ranks);
  if (grid.long_rows > 0) rows[0].spent = grid.columns;
  add_rings(builder, level, "reduce-scatter in columns", Phase::reduce_scatter, block_columns(level, grid, ranks));
  add_rings(builder, level, "reduce-scatter in rows", Phase::reduce_scatter, rows);
}

void nhr_v1_all_gather_stages(Builder& builder, const Level& level) {
  const Rank ranks = builder.size(level.group);
  const RingGrid grid(ranks);
  add_rings(builder, level, "all-gather in rows", Phase::all_gather, block_rows(level, grid, ranks));
  add_rings(builder, level, "all-gather in columns", Phase::all_gather, block_columns(level, grid, ranks));
}

Schedule nhr_v1_broadcast(const Operation& operation) {
  Builder builder(operation, "nhr-v1");
  const Level level{builder.add_group(Group::block(operation.ranks)), {}, true};
  const RingGrid grid(operation.ranks);
  Rank row = 0;
  while (grid.start(row) + grid.length(row) <= operation.root) ++row;
  scatter_in_row(builder, level, grid, row, operation.root - grid.start(row));
  broadcast_in_columns(builder, level, grid, row);
  add_rings(builder, level, "all-gather in rows", Phase::all_gather, slice_rows(level, grid));
  return std::move(builder).finish();
}

}  // namespace hcclsim::hccl
