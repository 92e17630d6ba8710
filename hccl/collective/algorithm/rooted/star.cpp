#include "hccl/collective/algorithm/rooted/star.hpp"

#include <string>
#include <utility>

#include "hccl/collective/algorithm/rooted/rooted.hpp"

namespace hcclsim::hccl {
namespace {

/// The notifies between the two ends of a star's links. The root has one slot per queue; all others use only their
/// first slot.
struct Star {
  std::uint16_t root;
  std::uint16_t others;
  std::uint32_t links;
  Peer to_other;   ///< queue q of the root: position q + 1
  Peer to_root;    ///< position y of the others, which is position y + 1
  Linear at_root;  ///< slot of the link, seen by the root
  Linear at_root_from_other;
  Linear at_other;
};

Star make_star(Builder& builder, const Level& level) {
  const std::uint32_t links = builder.size(level.group) - 1;
  const std::int32_t first = builder.reserve_notifies(links);
  return {root_of(builder, level.group),
          others_of(builder, level.group),
          links,
          peer_at(level.group, {1, 0, 0, 1}),
          peer_at(level.group, {0, -1, 0, 0}),
          {first, 0, 0, 1},
          {first, 1, 0, 0},
          {first}};
}

/// A stage in which one side of every link offers its memory, and the other reads.
void add_stage(Builder& builder, const Star& star, const std::string& name, std::vector<Task> of_root,
               std::vector<Task> of_others) {
  builder.add_stage(name).strands = {
      {.group = star.root, .queues = star.links, .loops = {{.tasks = std::move(of_root)}}},
      {.group = star.others, .loops = {{.tasks = std::move(of_others)}}}};
}

/// All others read `range` of the root.
void read_from_root(Builder& builder, const Level& level, const std::string& name, const Range& range) {
  const Star star = make_star(builder, level);
  add_stage(builder, star, name, {post(star.to_other, star.at_other), wait(star.at_root)},
            {wait(star.at_other), transfer(TaskKind::read, star.to_root, range, range),
             post(star.to_root, star.at_root_from_other)});
}

/// The root reads `source` of all others. Returns the group that consists of the root alone.
std::uint16_t read_by_root(Builder& builder, const Level& level, const std::string& name, const Range& source,
                           const Range& destination) {
  const Star star = make_star(builder, level);
  add_stage(builder, star, name,
            {wait(star.at_root), transfer(TaskKind::read, star.to_other, source, destination),
             post(star.to_other, star.at_other)},
            {post(star.to_root, star.at_root_from_other), wait(star.at_other)});
  return star.root;
}

}  // namespace

void star_broadcast(Builder& builder, const Level& level) {
  if (builder.size(level.group) == 1) return;
  read_from_root(builder, level, "broadcast from the root", output(level.parent));
}

void star_scatter(Builder& builder, const Level& level) {
  if (builder.size(level.group) == 1) return;
  read_from_root(builder, level, "scatter from the root", output(builder.share(level, {0, 1, 0, 0})));
}

void star_gather(Builder& builder, const Level& level) {
  if (builder.size(level.group) == 1) return;
  const Range share = output(builder.share(level, {1, 0, 0, 1}));
  read_by_root(builder, level, "gather at the root", share, share);
}

void star_reduce(Builder& builder, const Level& level) {
  const Rank others = builder.size(level.group) - 1;
  if (others == 0) return;
  const Range payload = output(level.parent);
  const Bytes stride = builder.reserve_scratch(others, level.parent);
  const Range landing = scratch(level.parent, {0, 0, 0, 1}, stride);
  const std::uint16_t root = read_by_root(builder, level, "read at the root", payload, landing);
  Loop loop{.rounds = {static_cast<std::int32_t>(others)}};
  loop.tasks = {reduce(scratch(level.parent, {0, 0, 1, 0}, stride), payload, !level.inline_reduce)};
  builder.add_stage("reduce at the root").strands = {{.group = root, .loops = {loop}}};
}

}  // namespace hcclsim::hccl
