#include "hccl/collective/algorithm/rooted/pipeline.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "hccl/collective/algorithm/builder.hpp"

namespace hcclsim::hccl {
namespace {

class Pipeline {
 public:
  Pipeline(const Operation& operation, const HierarchyLevel& server, const HierarchyLevel& between)
      : builder_(operation, "pipeline(mesh, ring)"),
        ranks_(static_cast<std::int32_t>(server.size)),
        servers_(static_cast<std::int32_t>(between.size)),
        inner_{builder_.add_group(Group::block(server.size)), {}, server.inline_reduce},
        outer_{builder_.add_group(Group::block(between.size, server.size)), {}, between.inline_reduce},
        first_mesh_notify_(builder_.reserve_notifies(2 * (server.size - 1))),
        first_ring_notify_(builder_.reserve_notifies(2)),
        // Slots for data from the others of the server, and one for data from another server.
        slot_stride_(builder_.reserve_scratch(server.size, part(0, {0, 1, 0, 0}))) {}

  void reduce_scatter() {
    for (std::int32_t step = -1; step < servers_ - 1; ++step) {
      const std::vector<Cut> collected = part(-2 - step, {0, 1, 0, 0});
      std::vector<Strand> strands;
      if (step >= 0) {
        const std::vector<Cut> sent = part(-1 - step, {0, 1, 0, 0});
        strands.push_back(outer_.inline_reduce ? ring(TaskKind::write_reduce, output(sent), output(sent))
                                               : ring(TaskKind::write, output(sent), from_server_before(sent)));
      }
      if (ranks_ > 1) strands.push_back(mesh(output(collected), scratch(collected, {-1, 0, 0, 1}, slot_stride_)));
      add_stage("reduce-scatter", step + 1, std::move(strands));

      Strand reduction{.group = inner_.group};
      if (step >= 0 && !outer_.inline_reduce) {
        reduction.loops.push_back({.tasks = {reduce(from_server_before(collected), output(collected), true)}});
      }
      if (ranks_ > 1) {
        reduction.loops.push_back({.rounds = {ranks_ - 1},
                                   .tasks = {reduce(scratch(collected, {0, 0, 1, 0}, slot_stride_), output(collected),
                                                    !inner_.inline_reduce)}});
      }
      if (!reduction.loops.empty()) add_stage("reduce", step + 1, {std::move(reduction)});
    }
  }

  void all_gather() {
    for (std::int32_t step = 0; step < servers_; ++step) {
      std::vector<Strand> strands;
      const std::vector<Cut> sent = part(-step, {0, 1, 0, 0});
      if (step < servers_ - 1) strands.push_back(ring(TaskKind::write, output(sent), output(sent)));
      const std::vector<Cut> collected = part(-step, {0, 1, 0, 1});
      if (ranks_ > 1) strands.push_back(mesh(output(collected), output(collected)));
      add_stage("all-gather", step, std::move(strands));
    }
  }

  Schedule finish() && { return std::move(builder_).finish(); }

 private:
  /// The part of rank `place` of the server that is `servers` after this one.
  [[nodiscard]] std::vector<Cut> part(std::int32_t servers, Linear place) const {
    const Level inside{inner_.group, builder_.share(outer_, {servers, 1, 0, 0}), inner_.inline_reduce};
    return builder_.share(inside, place);
  }
  [[nodiscard]] Range from_server_before(std::vector<Cut> cuts) const {
    return scratch(std::move(cuts), {ranks_ - 1}, slot_stride_);
  }

  /// One step between servers, on queue 0.
  [[nodiscard]] Strand ring(TaskKind kind, const Range& source, const Range& destination) const {
    const Peer next = peer_at(outer_.group, {1});
    Loop loop{.tasks = step(peer_at(outer_.group, {-1}), next, {first_ring_notify_}, {first_ring_notify_ + 1},
                            transfer(kind, next, source, destination))};
    return {.group = outer_.group, .loops = {std::move(loop)}};
  }

  /// Queue q = 1 … m−1 of place x reads `source` of place x+q, whose queue m−q reads from x.
  [[nodiscard]] Strand mesh(const Range& source, const Range& destination) const {
    const Peer peer = peer_at(inner_.group, {0, 0, 0, 1});
    const std::int32_t own = first_mesh_notify_ - 2;
    const std::int32_t at_peer = own + 2 * ranks_;
    Loop loop;
    loop.tasks = {post(peer, {at_peer, 0, 0, -2}), wait({own, 0, 0, 2}),
                  transfer(TaskKind::read, peer, source, destination), post(peer, {at_peer + 1, 0, 0, -2}),
                  wait({own + 1, 0, 0, 2})};
    return {.group = inner_.group, .first_queue = 1, .queues = static_cast<std::uint32_t>(ranks_ - 1), .loops = {loop}};
  }

  void add_stage(std::string_view name, std::int32_t step, std::vector<Strand> strands) {
    if (strands.empty()) return;
    builder_.add_stage(fmt::format("{}, step {}", name, step)).strands = std::move(strands);
  }

  Builder builder_;
  std::int32_t ranks_;  // of a server
  std::int32_t servers_;
  Level inner_;
  Level outer_;
  std::int32_t first_mesh_notify_;
  std::int32_t first_ring_notify_;
  Bytes slot_stride_;
};

}  // namespace

Schedule pipeline(const Operation& operation, const std::vector<HierarchyLevel>& levels) {
  if (levels.size() != 2) internal_error("{} levels in a pipeline of two", levels.size());
  Pipeline pipeline(operation, levels[0], levels[1]);
  if (operation.collective != Collective::allgather) pipeline.reduce_scatter();
  if (operation.collective != Collective::reduce_scatter) pipeline.all_gather();
  return std::move(pipeline).finish();
}

}  // namespace hcclsim::hccl
