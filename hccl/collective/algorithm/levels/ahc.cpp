#include "hccl/collective/algorithm/levels/ahc.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/nb.hpp"

namespace hcclsim::hccl {
namespace {

/// The largest number of parts that a cut may have.
constexpr std::uint64_t most_slices = 1U << 24U;
/// The largest number of transfers between groups of different sizes: a schedule lists them one by one.
constexpr std::uint64_t most_transfers = 1U << 17U;

std::uint32_t slices_of(const std::vector<Rank>& sizes) {
  std::uint64_t slices = 1;
  for (const Rank size : sizes) {
    slices = std::lcm(slices, std::uint64_t{size});
    if (slices > most_slices) {
      bad_input("algorithm", "ahc needs more than {} slices for groups of {} NPUs; use ring", most_slices,
                fmt::join(sizes, ", "));
    }
  }
  return static_cast<std::uint32_t>(slices);
}

/// A group with its place among all ranks.
struct Members {
  std::uint16_t group = 0;
  Rank first = 0;
  Rank size = 0;
  std::uint32_t neighbours = 1;  ///< slices of each member
};

/// Neighbouring slices with the same owners.
struct Run {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::vector<Rank> owners;  ///< of every group
};

/// In the order of slices.
std::vector<Run> runs_of(const std::vector<Members>& groups, std::uint32_t slices) {
  std::set<std::uint32_t> starts{slices};
  for (const Members& group : groups) {
    for (std::uint32_t slice = 0; slice < slices; slice += group.neighbours) starts.insert(slice);
  }
  std::vector<Run> all;
  for (auto start = starts.begin(); *start != slices; ++start) {
    Run run{.first = *start, .count = *std::next(start) - *start, .owners = {}};
    for (const Members& group : groups) run.owners.push_back(group.first + run.first / group.neighbours);
    all.push_back(std::move(run));
  }
  return all;
}

/// Lists of runs without a common owner; each run is put into the first list in which all its owners are free.
std::vector<std::vector<Run>> without_common_owners(std::vector<Run> runs) {
  std::vector<std::vector<Run>> all;
  std::vector<std::set<Rank>> busy;
  for (Run& run : runs) {
    std::size_t list = 0;
    const auto is_busy = [&](Rank owner) { return busy[list].contains(owner); };
    while (list < busy.size() && std::any_of(run.owners.begin(), run.owners.end(), is_busy)) ++list;
    if (list == busy.size()) {
      busy.emplace_back();
      all.emplace_back();
    }
    busy[list].insert(run.owners.begin(), run.owners.end());
    all[list].push_back(std::move(run));
  }
  return all;
}

using LoopsOf = std::vector<Loop> (*)(Builder&, const Level&);

class Ahc {
 public:
  Ahc(const Operation& operation, const UnevenGroups& groups)
      : builder_(operation, "ahc"),
        ranks_(operation.ranks),
        inline_inside_(groups.inline_inside),
        inline_between_(groups.inline_between),
        slices_(slices_of(groups.sizes)),
        all_(builder_.add_group(Group::block(ranks_))) {
    Rank first = 0;
    for (const Rank size : groups.sizes) {
      std::vector<Rank> members(size);
      std::iota(members.begin(), members.end(), first);
      const std::uint16_t group = builder_.add_group(Group::ordered(ranks_, std::move(members)));
      groups_.push_back({group, first, size, slices_ / size});
      first += size;
    }
    if (first != ranks_) internal_error("groups of {} ranks for {}", first, ranks_);
    queues_ = groups_.size() > 1 ? without_common_owners(runs_of(groups_, slices_)) : std::vector<std::vector<Run>>{};
  }

  Schedule allreduce() && {
    in_groups("reduce-scatter in the groups", nb_reduce_scatter_loops);
    for_each_run("allreduce between groups", [&](const Run& run, std::vector<Strand>& strands, std::uint32_t queue) {
      const Level level = level_of(run);
      Strand strand{.group = level.group, .first_queue = queue, .loops = nb_reduce_scatter_loops(builder_, level)};
      for (Loop& loop : nb_all_gather_loops(builder_, level)) strand.loops.push_back(std::move(loop));
      strands.push_back(std::move(strand));
    });
    in_groups("all-gather in the groups", nb_all_gather_loops);
    return std::move(builder_).finish();
  }

  Schedule reduce_scatter() && {
    in_groups("reduce-scatter in the groups", nb_reduce_scatter_loops);
    blocks_between_groups("reduce-scatter between groups", nb_reduce_scatter_loops, true);
    read_in_groups("slices of the own block", {0, 1, 0, 0}, {1, 1, 0, 1});
    return std::move(builder_).finish();
  }

  Schedule all_gather() && {
    read_in_groups("own slices of all blocks", {1, 1, 0, 1}, {0, 1, 0, 0});
    blocks_between_groups("all-gather between groups", nb_all_gather_loops, false);
    in_groups("all-gather in the groups", nb_all_gather_loops);
    return std::move(builder_).finish();
  }

 private:
  /// Level of a group, whose members have slices of the payload or of every block.
  [[nodiscard]] Level level_of(const Members& group) const {
    return {.group = group.group,
            .inline_reduce = inline_inside_,
            .slices_of_blocks = true,
            .neighbours = group.neighbours};
  }
  /// Level of the owners of a run, on its slices of the payload or of every block.
  [[nodiscard]] Level level_of(const Run& run) {
    const std::uint16_t owners = builder_.add_group(Group::ordered(ranks_, run.owners));
    return {.group = owners, .parent = {slices_in(run)}, .inline_reduce = inline_between_};
  }
  [[nodiscard]] Cut slices_in(const Run& run) const {
    return {.group = all_, .parts = slices_, .count = run.count, .index = {static_cast<std::int32_t>(run.first)}};
  }
  /// All blocks of a group's members.
  [[nodiscard]] Cut blocks_of(const Members& group) const {
    return {.kind = Cut::Kind::block,
            .group = all_,
            .parts = ranks_,
            .count = group.size,
            .index = {static_cast<std::int32_t>(group.first)}};
  }

  void add_stage(std::string name, std::vector<Strand> strands) {
    builder_.reserve_behind_all();
    if (!strands.empty()) builder_.add_stage(std::move(name)).strands = std::move(strands);
  }

  /// Groups have no ranks in common, and use the same notify slots.
  void in_groups(std::string name, LoopsOf loops) {
    std::vector<Strand> strands;
    const std::int32_t slot = builder_.next_notify();
    for (const Members& group : groups_) {
      if (group.size == 1) continue;
      builder_.reserve_again_from(slot);
      strands.push_back({.group = group.group, .loops = loops(builder_, level_of(group))});
    }
    add_stage(std::move(name), std::move(strands));
  }

  /// Every member reads slice `slice` of the block `block`, counted among those of the group, from the member after it
  /// by 1 + queue.
  void read_in_groups(std::string name, Linear block, Linear slice) {
    std::vector<Strand> strands;
    const std::int32_t slot = builder_.next_notify();
    for (const Members& group : groups_) {
      if (group.size == 1) continue;
      builder_.reserve_again_from(slot);
      const Cut one{.kind = Cut::Kind::block, .group = group.group, .parts = group.size, .index = block};
      const Cut part{.group = group.group, .parts = group.size, .index = slice, .neighbours = group.neighbours};
      const Range range = output({blocks_of(group), one, part});
      strands.push_back(read_from_all(builder_, group.group, range, range));
    }
    add_stage(std::move(name), std::move(strands));
  }

  /// A stage with what `add` makes of every run; runs of one queue use the same notify slots.
  template <typename Add>
  void for_each_run(std::string name, const Add& add) {
    std::vector<Strand> strands;
    for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) {
      builder_.reserve_behind_all();
      const std::int32_t slot = builder_.next_notify();
      for (const Run& run : queues_[queue]) {
        builder_.reserve_again_from(slot);
        add(run, strands, queue);
      }
    }
    add_stage(std::move(name), std::move(strands));
  }

  [[nodiscard]] bool groups_are_alike() const {
    return std::all_of(groups_.begin(), groups_.end(),
                       [&](const Members& group) { return group.size == groups_.front().size; });
  }

  /// Blocks of all groups, between owners of the same slices; `loops` where groups are alike.
  void blocks_between_groups(std::string name, LoopsOf loops, bool reduces) {
    if (groups_are_alike()) {
      for_each_run(std::move(name), [&](const Run& run, std::vector<Strand>& strands, std::uint32_t queue) {
        const Level level = level_of(run);
        strands.push_back({.group = level.group, .first_queue = queue, .loops = loops(builder_, level)});
      });
      return;
    }
    require_few_transfers();
    for_each_run(std::move(name), [&](const Run& run, std::vector<Strand>& strands, std::uint32_t queue) {
      const std::int32_t slot = builder_.reserve_notifies(2 * static_cast<std::uint32_t>(groups_.size() - 1));
      for (std::size_t owner = 0; owner < groups_.size(); ++owner) {
        strands.push_back({.group = alone(run.owners[owner]),
                           .first_queue = queue,
                           .loops = {{.tasks = exchange(run, owner, slot, reduces)}}});
      }
    });
  }

  void require_few_transfers() const {
    std::uint64_t runs = 0;
    for (const std::vector<Run>& queue : queues_) runs += queue.size();
    const std::uint64_t transfers = runs * groups_.size() * (groups_.size() - 1);
    if (transfers > most_transfers) {
      bad_input("algorithm", "ahc: {} transfers between {} groups of different sizes; up to {} are simulated; use ring",
                transfers, groups_.size(), most_transfers);
    }
  }

  /// The strand's group of one rank.
  std::uint16_t alone(Rank rank) {
    if (alone_.empty()) alone_.resize(ranks_, all_);
    if (alone_[rank] == all_) alone_[rank] = builder_.add_group(Group::ordered(ranks_, {rank}));
    return alone_[rank];
  }

  /// What an owner of a run does: in step s it writes to group i+s, and group i−s writes to it. A reduction sends the
  /// blocks of the receiving group; otherwise a rank sends its own blocks.
  std::vector<Task> exchange(const Run& run, std::size_t owner, std::int32_t slot, bool reduces) {
    const std::size_t count = groups_.size();
    const auto blocks = [&](std::size_t group) { return std::vector<Cut>{blocks_of(groups_[group]), slices_in(run)}; };
    const auto peer = [&](std::size_t group) { return peer_at(all_, {static_cast<std::int32_t>(run.owners[group])}); };
    const bool by_core = reduces && !inline_between_;
    if (by_core) builder_.reserve_scratch(1, {});
    std::vector<Task> tasks;
    for (std::size_t step = 1; step < count; ++step, slot += 2) {
      const std::size_t to = (owner + step) % count;
      const std::size_t from = (owner + count - step) % count;
      const std::vector<Cut> sent = blocks(reduces ? to : owner);
      const TaskKind kind = reduces && inline_between_ ? TaskKind::write_reduce : TaskKind::write;
      tasks.insert(tasks.end(), {post(peer(from), {slot}), wait({slot}),
                                 transfer(kind, peer(to), output(sent), by_core ? scratch(sent, {}, 0) : output(sent)),
                                 post(peer(to), {slot + 1}), wait({slot + 1})});
      if (by_core) tasks.push_back(reduce(scratch(blocks(owner), {}, 0), output(blocks(owner)), true));
    }
    return tasks;
  }

  Builder builder_;
  Rank ranks_;
  bool inline_inside_;
  bool inline_between_;
  std::uint32_t slices_;
  std::uint16_t all_;  ///< the group of all ranks
  std::vector<Members> groups_;
  std::vector<std::vector<Run>> queues_;
  std::vector<std::uint16_t> alone_;  ///< of a rank, or all_
};

}  // namespace

Schedule ahc(const Operation& operation, const UnevenGroups& groups) {
  Ahc ahc(operation, groups);
  if (operation.collective == Collective::reduce_scatter) return std::move(ahc).reduce_scatter();
  if (operation.collective == Collective::allgather) return std::move(ahc).all_gather();
  return std::move(ahc).allreduce();
}

}  // namespace hcclsim::hccl
