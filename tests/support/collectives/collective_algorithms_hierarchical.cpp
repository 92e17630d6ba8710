#include <fmt/format.h>

#include <utility>

#include "hccl/collective/algorithm/levels/hierarchical.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/algorithm/rooted/pipeline.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"

namespace hcclsim::test {
namespace {

using hccl::Algorithm;
using hccl::Collective;
using hccl::HierarchyLevel;

HierarchyLevel level(Rank size, Algorithm algorithm, bool inlined) {
  HierarchyLevel level{.size = size, .algorithm = algorithm, .inline_reduce = inlined};
  if (algorithm == Algorithm::multi_ring) level.rings = hccl::double_ring(size);
  return level;
}

/// Levels of the given sizes, and an outermost one for the rest of the ranks.
CollectiveAlgorithm over_levels(Collective collective, const std::vector<Rank>& sizes,
                                const std::vector<Algorithm>& algorithms, bool inlined) {
  Rank inside = 1;
  std::string shape;
  for (const Rank size : sizes) {
    inside *= size;
    shape += fmt::format("{} x ", size);
  }
  shape += "rest";
  for (const Algorithm algorithm : algorithms) shape += fmt::format(", {}", name_of(algorithm));
  return {collective, shape + (inlined ? "" : ", reduced by a core"),
          [=](const hccl::Operation& operation) {
            std::vector<HierarchyLevel> levels;
            for (std::size_t l = 0; l < sizes.size(); ++l) levels.push_back(level(sizes[l], algorithms[l], inlined));
            levels.push_back(level(operation.ranks / inside, algorithms.back(), inlined));
            return hierarchical(operation, levels);
          },
          [=](Rank ranks) { return ranks % inside == 0; }};
}

CollectiveAlgorithm overlapped(Collective collective, Rank servers, bool inlined) {
  return {collective, fmt::format("pipeline of {} servers{}", servers, inlined ? "" : ", reduced by a core"),
          [=](const hccl::Operation& operation) {
            return pipeline(operation, {{.size = operation.ranks / servers, .inline_reduce = inlined},
                                        {.size = servers, .inline_reduce = inlined}});
          },
          [=](Rank ranks) { return ranks % servers == 0; }};
}

}  // namespace

std::vector<CollectiveAlgorithm> hierarchical_algorithms() {
  using enum Algorithm;
  std::vector<CollectiveAlgorithm> all;
  for (const Collective collective : {Collective::reduce_scatter, Collective::allgather}) {
    all.push_back(over_levels(collective, {2}, {ring, mesh}, true));
    all.push_back(over_levels(collective, {3}, {ring, ring}, false));
    all.push_back(over_levels(collective, {4}, {multi_ring, ring}, true));
    all.push_back(over_levels(collective, {4}, {mesh, ring}, false));
    all.push_back(over_levels(collective, {2, 3}, {mesh, multi_ring, ring}, false));
    all.push_back(over_levels(collective, {2, 2}, {ring, mesh, mesh}, true));
  }
  for (const Collective collective :
       {Collective::broadcast, Collective::reduce, Collective::scatter, Collective::gather}) {
    all.push_back(over_levels(collective, {2}, {mesh, ring}, true));
    all.push_back(over_levels(collective, {3}, {ring, mesh}, false));
    all.push_back(over_levels(collective, {2, 2}, {ring, mesh, ring}, true));
    all.push_back(over_levels(collective, {3, 2}, {mesh, multi_ring, mesh}, false));
  }
  for (const Collective collective : {Collective::reduce_scatter, Collective::allgather, Collective::allreduce}) {
    all.push_back(over_levels(collective, {2}, {mesh, nhr}, false));
    all.push_back(over_levels(collective, {2, 3}, {ring, nb, nhr}, true));
  }
  for (const Collective collective : {Collective::reduce_scatter, Collective::allgather, Collective::allreduce}) {
    all.push_back(overlapped(collective, 2, true));
    all.push_back(overlapped(collective, 4, false));
    all.push_back(overlapped(collective, 3, false));
  }
  for (const Rank inside : {2U, 3U, 4U}) {
    all.push_back(over_levels(Collective::alltoall, {inside}, {inside == 3 ? pairwise : mesh, pairwise}, true));
    all.back().takes_counts = false;
  }
  for (const Algorithm outer : {nhr, nb, halving_doubling}) {
    all.push_back(over_levels(Collective::broadcast, {4}, {mesh, outer}, true));
  }
  all.push_back(over_levels(Collective::broadcast, {2, 3}, {nhr, nb, ring}, true));
  all.push_back(over_levels(Collective::scatter, {2, 2}, {nb, nhr, nb}, true));
  all.push_back(over_levels(Collective::reduce, {4}, {mesh, halving_doubling}, false));
  all.push_back(over_levels(Collective::reduce_scatter, {2, 4}, {ring, halving_doubling, ring}, true));
  all.push_back(over_levels(Collective::allreduce, {2, 2}, {ring, mesh, multi_ring}, true));
  all.push_back(over_levels(Collective::allreduce, {3, 2}, {mesh, multi_ring, halving_doubling}, false));
  return all;
}

}  // namespace hcclsim::test
