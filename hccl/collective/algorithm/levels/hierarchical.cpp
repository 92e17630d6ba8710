#include "hccl/collective/algorithm/levels/hierarchical.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "hccl/collective/algorithm/levels/level_stages.hpp"

namespace hcclsim::hccl {
namespace {

std::string name_of(const std::vector<HierarchyLevel>& levels) {
  std::string names;
  for (const HierarchyLevel& level : levels) {
    names += names.empty() ? "" : ", ";
    names += name_of(level.algorithm);
  }
  return fmt::format("hierarchical({})", names);
}

std::string place_of(std::size_t level) {
  constexpr std::array<std::string_view, 3> places{"in the server", "between servers", "between super-pods"};
  return level < places.size() ? std::string(places[level]) : fmt::format("on level {}", level);
}

class Hierarchy {
 public:
  Hierarchy(const Operation& operation, const std::vector<HierarchyLevel>& levels)
      : builder_(operation, name_of(levels)),
        ranks_(operation.ranks),
        root_(operation.root),
        counts_(operation.counts.counts()) {
    Rank stride = 1;
    for (const HierarchyLevel& level : levels) {
      if (level.size > 1) make_level(level, stride, place_of(static_cast<std::size_t>(&level - levels.data())));
      stride *= level.size;
    }
    if (stride != operation.ranks) internal_error("levels of {} ranks for {}", stride, operation.ranks);
    if (operation.blocks() > 1) {
      // Each level has the blocks of the ranks that share the digits of the levels outside of it.
      for (std::size_t l = levels_.size(); l-- > 1;) levels_[l - 1].level.parent = own_share(levels_[l]);
    } else {
      // Each level has the slice that the levels inside of it leave to the rank.
      for (std::size_t l = 1; l < levels_.size(); ++l) levels_[l].level.parent = own_share(levels_[l - 1]);
    }
  }

  Schedule build(Collective collective) && {
    using enum Collective;
    switch (collective) {
      case allreduce:
        up_and_down(reduce_scatter, collective, allgather);
        break;
      case broadcast:
        up_and_down(scatter, collective, allgather);
        break;
      case reduce:
        up_and_down(reduce_scatter, collective, gather);
        break;
      case reduce_scatter:
        for (std::size_t l = levels_.size(); l-- > 0;) add(collective, levels_[l]);
        break;
      case scatter:
        for (std::size_t l = levels_.size(); l-- > 0;) add_at_root_inside(collective, levels_[l]);
        break;
      case allgather:
        for (const LevelStages& level : levels_) add(collective, level);
        break;
      case gather:
        for (const LevelStages& level : levels_) add_at_root_inside(collective, level);
        break;
      case Collective::alltoall:
        this->alltoall();
        break;
      default:
        bad_input("hierarchical", "there is no {} over several levels", name_of(collective));
    }
    return std::move(builder_).finish();
  }

 private:
  /// One part on each level but the outermost, `top` there, and the other part on the way back.
  void up_and_down(Collective up, Collective top, Collective down) {
    if (levels_.empty()) return;
    const auto add_part = [&](Collective part, const LevelStages& level) {
      if (part == Collective::scatter || part == Collective::gather) {
        add_at_root_outside(part, level);
      } else {
        add(part, level);
      }
    };
    for (std::size_t l = 0; l + 1 < levels_.size(); ++l) add_part(up, levels_[l]);
    add(top, levels_.back());
    for (std::size_t l = levels_.size() - 1; l-- > 0;) add_part(down, levels_[l]);
  }

  /// A block goes first to the rank in the receiver's place, then to the receiver's server.
  void alltoall() {
    require_alltoall();
    if (levels_.empty()) {
      builder_.add_stage("copy").strands = {
          {.group = builder_.add_group(Group::block(ranks_)), .loops = {{.tasks = {copy(input({}), output({}))}}}}};
    } else if (levels_.size() == 1) {
      levels_[0].alltoall = alltoall_of_blocks(builder_, levels_[0].level);
      add(Collective::alltoall, levels_[0]);
    } else {
      LevelStages& inner = levels_[0];
      LevelStages& outer = levels_[1];
      builder_.reserve_scratch(1, {});
      const auto parts_in = [this](Range (*in)(std::vector<Cut>), std::uint16_t group) {
        return [=, parts = builder_.size(group)](Linear part) {
          return in({{.kind = Cut::Kind::block, .group = group, .parts = parts, .index = part}});
        };
      };
      inner.alltoall = {input({one_of_each(outer, inner)}), parts_in(in_scratch, inner.level.group)};
      outer.alltoall = {in_scratch({one_of_each(inner, outer)}), parts_in(output, outer.level.group)};
      add(Collective::alltoall, inner);
      add(Collective::alltoall, outer);
    }
  }

  void require_alltoall() const {
    if (levels_.size() > 2) bad_input("hierarchical", "alltoall over {} levels; there are two at most", levels_.size());
    if (std::adjacent_find(counts_.begin(), counts_.end(), std::not_equal_to<>()) != counts_.end()) {
      bad_input("hierarchical", "alltoall over levels has blocks of one size; here they differ: use pairwise");
    }
  }

  static Range in_scratch(std::vector<Cut> cuts) { return scratch(std::move(cuts), {}, 0); }

  /// There are as many rows of blocks as `rows` has members, each with one block for every member of `stages`; picks
  /// from each row the block for the rank's own position there.
  [[nodiscard]] Cut one_of_each(const LevelStages& rows, const LevelStages& stages) const {
    return {.kind = Cut::Kind::block,
            .group = stages.level.group,
            .parts = ranks_,
            .count = builder_.size(rows.level.group),
            .step = builder_.size(stages.level.group),
            .index = {0, 1, 0, 0}};
  }

  void add(Collective collective, const LevelStages& stages) { add_level(builder_, collective, stages); }

  /// Only for ranks that have the root's digits on all levels outside this one.
  void add_at_root_outside(Collective collective, const LevelStages& stages) {
    add_restricted(collective, stages, [&](const Group& group) {
      const Rank block = root_ / (group.stride() * group.span());
      std::vector<Rank> members = places_of(group);
      for (Rank& member : members) member += block * group.span();
      return Group::ordered(ranks_ / group.stride(), std::move(members), group.stride());
    });
  }
  /// The same for all levels inside this one.
  void add_at_root_inside(Collective collective, const LevelStages& stages) {
    add_restricted(collective, stages, [&](const Group& group) {
      const Rank place = root_ % group.stride();
      std::vector<Rank> members = places_of(group);
      for (Rank& member : members) member = place + member * group.stride();
      return Group::ordered(group.span() * group.stride(), std::move(members));
    });
  }

  /// Adds the stages of all groups of the level, then leaves only those of the groups that `few` gives. These have the
  /// same positions, so that peers stay where they are; byte ranges go on seeing the level's own groups.
  template <typename Few>
  void add_restricted(Collective collective, const LevelStages& stages, const Few& few) {
    const std::size_t first = builder_.stages().size();
    add(collective, stages);
    std::map<std::uint16_t, std::uint16_t> restricted;
    const auto restrict_to_few = [&](std::uint16_t& group) {
      const auto [entry, is_new] = restricted.try_emplace(group);
      if (is_new) entry->second = builder_.add_group(few(Group(builder_.group(group))));
      group = entry->second;
    };
    for (std::size_t stage = first; stage < builder_.stages().size(); ++stage) {
      for (Strand& strand : builder_.stages()[stage].strands) {
        restrict_to_few(strand.group);
        for (Loop& loop : strand.loops) {
          for (Task& task : loop.tasks) {
            if (task.peer.kind != Peer::Kind::none) restrict_to_few(task.peer.group);
          }
        }
      }
    }
  }

  [[nodiscard]] static std::vector<Rank> places_of(const Group& group) {
    std::vector<Rank> places(group.size());
    for (Rank position = 0; position < group.size(); ++position) places[position] = group.place_of(position);
    return places;
  }

  void make_level(const HierarchyLevel& level, Rank stride, std::string place) {
    LevelStages stages{.algorithm = level.algorithm,
                       .level = {builder_.add_group(Group::block(level.size, stride)), {}, level.inline_reduce},
                       .root = root_ / stride % level.size,
                       .place = std::move(place)};
    if (level.algorithm == Algorithm::ring) stages.rings.push_back(stages.level.group);
    if (level.algorithm == Algorithm::multi_ring) {
      for (const std::vector<Rank>& order : level.rings) {
        stages.rings.push_back(builder_.add_group(Group::ordered(level.size, order, stride)));
      }
    }
    levels_.push_back(std::move(stages));
  }

  /// The share of the rank's own position.
  [[nodiscard]] std::vector<Cut> own_share(const LevelStages& stages) const {
    return builder_.share(stages.level, {0, 1, 0, 0});
  }

  Builder builder_;
  Rank ranks_;
  Rank root_;
  std::vector<std::uint64_t> counts_;  // of blocks, if they are given
  std::vector<LevelStages> levels_;    // those of more than one rank
};

}  // namespace

Schedule hierarchical(const Operation& operation, const std::vector<HierarchyLevel>& levels) {
  return Hierarchy(operation, levels).build(operation.collective);
}

}  // namespace hcclsim::hccl
