#include "hccl/collective/hierarchical.hpp"

#include <string>

#include "base/error.hpp"
#include "hccl/collective/halving_doubling.hpp"
#include "hccl/collective/mesh.hpp"
#include "hccl/collective/ring.hpp"

namespace hcclsim::hccl {
namespace {

void add_rings(Builder& builder, const std::string& name, const Rings& rings, bool inline_reduce, RingLoop loop) {
  std::vector<Strand> strands;
  for (std::uint32_t ring = 0; ring < rings.size(); ++ring) {
    const Level level{rings[ring], {}, inline_reduce};
    strands.push_back({.group = level.group,
                       .first_queue = ring,
                       .loops = {loop(builder, level, ring, static_cast<std::uint32_t>(rings.size()))}});
  }
  builder.add_stage(name).strands = std::move(strands);
}

}  // namespace

std::string_view name_of(InnerAlgorithm algorithm) {
  switch (algorithm) {
    case InnerAlgorithm::ring:
      return "ring";
    case InnerAlgorithm::multi_ring:
      return "multi-ring";
    case InnerAlgorithm::mesh:
      return "mesh";
  }
  internal_error("unknown inner algorithm {}", static_cast<int>(algorithm));
}

std::string_view name_of(OuterAlgorithm algorithm) {
  return algorithm == OuterAlgorithm::ring ? "ring" : "halving-doubling";
}

Schedule hierarchical_allreduce(const Operation& operation, const HierarchicalOptions& options) {
  const Rank inner_size = options.ranks_per_server;
  if (inner_size == 0 || operation.ranks % inner_size != 0) {
    internal_error("{} ranks do not fall into servers of {}", operation.ranks, inner_size);
  }
  const Rank servers = operation.ranks / inner_size;
  Builder builder(operation, fmt::format("hierarchical({}, {})", name_of(options.inner), name_of(options.outer)));
  const std::uint16_t server = builder.add_group(Group::block(inner_size));
  const Level inner{server, {}, options.inline_reduce_inner};

  Rings rings;
  if (options.inner == InnerAlgorithm::ring) rings.push_back(server);
  if (options.inner == InnerAlgorithm::multi_ring) {
    for (const std::vector<Rank>& order : options.orders) {
      rings.push_back(builder.add_group(Group::ordered(inner_size, order)));
    }
  }
  if (inner_size > 1) {
    if (options.inner == InnerAlgorithm::mesh) {
      mesh_reduce_scatter(builder, inner);
    } else {
      add_rings(builder, "reduce-scatter in the server", rings, options.inline_reduce_inner, ring_reduce_scatter);
    }
  }
  if (servers > 1) {
    // Each rank now holds the slice of its place in the server.
    const Cut own{.group = server, .parts = inner_size, .index = {0, 1, 0, 0}};
    const Level outer{builder.add_group(Group::block(servers, inner_size)), {own}, options.inline_reduce_outer};
    if (options.outer == OuterAlgorithm::halving_doubling) {
      halving_doubling_stages(builder, outer);
    } else {
      Strand strand{.group = outer.group};
      strand.loops.push_back(ring_reduce_scatter(builder, outer, 0, 1));
      strand.loops.push_back(ring_all_gather(builder, outer, 0, 1));
      builder.add_stage("ring between servers").strands.push_back(std::move(strand));
    }
  }
  if (inner_size > 1) {
    if (options.inner == InnerAlgorithm::mesh) {
      mesh_all_gather(builder, inner);
    } else {
      add_rings(builder, "all-gather in the server", rings, true, ring_all_gather);
    }
  }
  return std::move(builder).finish();
}

}  // namespace hcclsim::hccl
