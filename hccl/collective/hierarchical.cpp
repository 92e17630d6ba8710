#include "hccl/collective/hierarchical.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "hccl/collective/level.hpp"

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
      : builder_(operation, name_of(levels)) {
    Rank stride = 1;
    for (const HierarchyLevel& level : levels) {
      if (level.size > 1) make_level(level, stride, place_of(static_cast<std::size_t>(&level - levels.data())));
      stride *= level.size;
    }
    if (stride != operation.ranks) internal_error("levels of {} ranks for {}", stride, operation.ranks);
    if (operation.blocks() > 1) {
      set_parents_of_blocks();
    } else {
      set_parents_of_slices();
    }
  }

  Schedule allreduce() && {
    if (!levels_.empty()) {
      for (std::size_t l = 0; l + 1 < levels_.size(); ++l) add(Collective::reduce_scatter, levels_[l]);
      add(Collective::allreduce, levels_.back());
      for (std::size_t l = levels_.size() - 1; l-- > 0;) add(Collective::allgather, levels_[l]);
    }
    return std::move(builder_).finish();
  }

  Schedule reduce_scatter() && {
    for (std::size_t l = levels_.size(); l-- > 0;) add(Collective::reduce_scatter, levels_[l]);
    return std::move(builder_).finish();
  }

  Schedule all_gather() && {
    for (const LevelStages& level : levels_) add(Collective::allgather, level);
    return std::move(builder_).finish();
  }

 private:
  void add(Collective collective, const LevelStages& stages) { add_level(builder_, collective, stages); }

  void make_level(const HierarchyLevel& level, Rank stride, std::string place) {
    LevelStages stages{.algorithm = level.algorithm,
                       .level = {builder_.add_group(Group::block(level.size, stride)), {}, level.inline_reduce},
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

  /// Each level has the slice that the levels inside of it leave to the rank.
  void set_parents_of_slices() {
    for (std::size_t l = 1; l < levels_.size(); ++l) levels_[l].level.parent = own_share(levels_[l - 1]);
  }
  /// Each level has the blocks of the ranks that share the digits of the levels outside of it.
  void set_parents_of_blocks() {
    for (std::size_t l = levels_.size(); l-- > 1;) levels_[l - 1].level.parent = own_share(levels_[l]);
  }

  Builder builder_;
  std::vector<LevelStages> levels_;  // those of more than one rank
};

}  // namespace

Schedule hierarchical(const Operation& operation, const std::vector<HierarchyLevel>& levels) {
  Hierarchy hierarchy(operation, levels);
  switch (operation.collective) {
    case Collective::allreduce:
      return std::move(hierarchy).allreduce();
    case Collective::reduce_scatter:
      return std::move(hierarchy).reduce_scatter();
    case Collective::allgather:
      return std::move(hierarchy).all_gather();
    default:
      bad_input("hierarchical", "there is no {} over several levels", name_of(operation.collective));
  }
}

}  // namespace hcclsim::hccl
