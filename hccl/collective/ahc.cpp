#include "hccl/collective/ahc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/collective/ring.hpp"

namespace hcclsim::hccl {
namespace {

/// As many parts as a cut may have.
constexpr std::uint64_t most_slices = 1U << 24U;

std::uint32_t slices_of(const std::vector<Rank>& sizes) {
  std::uint64_t slices = 1;
  for (const Rank size : sizes) {
    slices = std::lcm(slices, std::uint64_t{size});
    if (slices > most_slices) {
      bad_input("algorithm", "ahc needs more than {} slices for servers of {} NPUs; use ring", most_slices,
                fmt::join(sizes, ", "));
    }
  }
  return static_cast<std::uint32_t>(slices);
}

/// Neighbouring slices with the same owners.
struct Run {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::vector<Rank> owners;
};

class Ahc {
 public:
  Ahc(const Operation& operation, const UnevenGroups& servers)
      : builder_(operation, "ahc"), ranks_(operation.ranks), servers_(servers), slices_(slices_of(servers.sizes)) {
    Rank first = 0;
    for (const Rank size : servers.sizes) {
      std::vector<Rank> members(size);
      std::iota(members.begin(), members.end(), first);
      first += size;
      groups_.push_back({.group = builder_.add_group(Group::ordered(ranks_, std::move(members))),
                         .inline_reduce = servers.inline_inside,
                         .neighbours = slices_ / size});
    }
    if (first != ranks_) internal_error("servers of {} ranks for {}", first, ranks_);
  }

  Schedule allreduce() && {
    add_in_groups("reduce-scatter in the server", ring_reduce_scatter);
    std::uint32_t number = 0;
    for (const std::vector<Run>& round : rounds()) {
      Stage stage{fmt::format("allreduce between servers, {}", ++number), {}};
      for (const Run& run : round) stage.strands.push_back(strand_of(run));
      builder_.stages().push_back(std::move(stage));
    }
    add_in_groups("all-gather in the server", ring_all_gather);
    return std::move(builder_).finish();
  }

 private:
  void add_in_groups(std::string name, RingLoop loop) {
    Stage stage{std::move(name), {}};
    for (const Level& level : groups_) {
      if (builder_.size(level.group) == 1) continue;
      stage.strands.push_back({.group = level.group, .loops = {loop(builder_, level, 0, 1)}});
    }
    if (!stage.strands.empty()) builder_.stages().push_back(std::move(stage));
  }

  /// In the order of slices.
  [[nodiscard]] std::vector<Run> runs() const {
    std::set<std::uint32_t> starts;
    for (const Level& level : groups_) {
      for (std::uint32_t slice = 0; slice < slices_; slice += level.neighbours) starts.insert(slice);
    }
    std::vector<Run> all;
    for (auto start = starts.begin(); start != starts.end(); ++start) {
      const auto next = std::next(start);
      Run run{.first = *start, .count = (next == starts.end() ? slices_ : *next) - *start, .owners = {}};
      for (const Level& level : groups_) {
        run.owners.push_back(builder_.group(level.group).place_of(run.first / level.neighbours));
      }
      all.push_back(std::move(run));
    }
    return all;
  }

  /// Runs that have no owner in common, in the first round in which all owners are free.
  [[nodiscard]] std::vector<std::vector<Run>> rounds() const {
    std::vector<std::vector<Run>> all;
    if (groups_.size() == 1) return all;
    std::vector<std::set<Rank>> busy;
    for (Run& run : runs()) {
      std::size_t round = 0;
      const auto is_busy = [&](Rank owner) { return busy[round].contains(owner); };
      while (round < busy.size() && std::any_of(run.owners.begin(), run.owners.end(), is_busy)) ++round;
      if (round == busy.size()) {
        busy.emplace_back();
        all.emplace_back();
      }
      busy[round].insert(run.owners.begin(), run.owners.end());
      all[round].push_back(std::move(run));
    }
    return all;
  }

  Strand strand_of(const Run& run) {
    const std::uint16_t group = builder_.add_group(Group::ordered(ranks_, run.owners));
    const Cut slices{
        .group = group, .parts = slices_, .count = run.count, .index = {static_cast<std::int32_t>(run.first), 0, 0, 0}};
    const Level level{.group = group, .parent = {slices}, .inline_reduce = servers_.inline_between};
    Strand strand{.group = group};
    strand.loops.push_back(ring_reduce_scatter(builder_, level, 0, 1));
    strand.loops.push_back(ring_all_gather(builder_, level, 0, 1));
    return strand;
  }

  Builder builder_;
  Rank ranks_;
  const UnevenGroups& servers_;
  std::uint32_t slices_;
  std::vector<Level> groups_;
};

}  // namespace

Schedule ahc_allreduce(const Operation& operation, const UnevenGroups& servers) {
  return Ahc(operation, servers).allreduce();
}

}  // namespace hcclsim::hccl
