#include <utility>

#include "hccl/collective/algorithm/barrier.hpp"
#include "hccl/collective/algorithm/direct.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/pairwise.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/algorithm/ring_rooted.hpp"
#include "hccl/collective/algorithm/star.hpp"
#include "tests/support/collective_algorithms.hpp"

namespace hcclsim::test {

using namespace hccl;

std::vector<CollectiveAlgorithm> one_level_algorithms() {
  const auto any = [](Rank) { return true; };
  const auto eight = [](Rank ranks) { return ranks == 8; };
  std::vector<CollectiveAlgorithm> all{
      {Collective::allgather, "ring", [](const Operation& o) { return ring_all_gather(o); }, any},
      {Collective::allgather, "double ring",
       [](const Operation& o) { return multi_ring_all_gather(o, double_ring(o.ranks)); }, any},
      {Collective::allgather, "four rings",
       [](const Operation& o) { return multi_ring_all_gather(o, four_rings_of_910a()); }, eight},
      {Collective::broadcast, "ring", [](const Operation& o) { return ring_broadcast(o); }, any},
      {Collective::scatter, "ring", [](const Operation& o) { return ring_scatter(o); }, any},
      {Collective::gather, "ring", [](const Operation& o) { return ring_gather(o); }, any},
      {Collective::broadcast, "double ring",
       [](const Operation& o) { return multi_ring_broadcast(o, double_ring(o.ranks)); }, any},
      {Collective::broadcast, "four rings",
       [](const Operation& o) { return multi_ring_broadcast(o, four_rings_of_910a()); }, eight},
      {Collective::scatter, "double ring",
       [](const Operation& o) { return multi_ring_scatter(o, double_ring(o.ranks)); }, any},
      {Collective::scatter, "four rings",
       [](const Operation& o) { return multi_ring_scatter(o, four_rings_of_910a()); }, eight},
      {Collective::gather, "double ring", [](const Operation& o) { return multi_ring_gather(o, double_ring(o.ranks)); },
       any},
      {Collective::gather, "four rings", [](const Operation& o) { return multi_ring_gather(o, four_rings_of_910a()); },
       eight},
      {Collective::allgather, "mesh", [](const Operation& o) { return mesh_all_gather(o); }, any},
      {Collective::broadcast, "mesh", [](const Operation& o) { return mesh_broadcast(o); }, any},
      {Collective::scatter, "mesh", mesh_scatter, any},
      {Collective::gather, "mesh", mesh_gather, any},
      {Collective::alltoall, "mesh", mesh_alltoall, any},
      {Collective::broadcast, "star", [](const Operation& o) { return star_broadcast(o); }, any},
      {Collective::scatter, "star", [](const Operation& o) { return star_scatter(o); }, any},
      {Collective::gather, "star", [](const Operation& o) { return star_gather(o); }, any},
      {Collective::alltoall, "pairwise", pairwise_alltoall, any},
      {Collective::send_recv, "direct", direct_send_recv, any},
      {Collective::barrier, "direct", direct_barrier, any},
  };
  for (const bool inlined : {true, false}) {
    const std::vector<CollectiveAlgorithm> reducing{
        {Collective::reduce_scatter, "ring", [=](const Operation& o) { return ring_reduce_scatter(o, inlined); }, any},
        {Collective::reduce_scatter, "double ring",
         [=](const Operation& o) { return multi_ring_reduce_scatter(o, double_ring(o.ranks), inlined); }, any},
        {Collective::reduce_scatter, "four rings",
         [=](const Operation& o) { return multi_ring_reduce_scatter(o, four_rings_of_910a(), inlined); }, eight},
        {Collective::reduce_scatter, "mesh", [=](const Operation& o) { return mesh_reduce_scatter(o, inlined); }, any},
        {Collective::reduce, "ring", [=](const Operation& o) { return ring_reduce(o, inlined); }, any},
        {Collective::reduce, "double ring",
         [=](const Operation& o) { return multi_ring_reduce(o, double_ring(o.ranks), inlined); }, any},
        {Collective::reduce, "four rings",
         [=](const Operation& o) { return multi_ring_reduce(o, four_rings_of_910a(), inlined); }, eight},
        {Collective::reduce, "mesh", [=](const Operation& o) { return mesh_reduce(o, inlined); }, any},
        {Collective::reduce, "star", [=](const Operation& o) { return star_reduce(o, inlined); }, any},
    };
    for (CollectiveAlgorithm algorithm : reducing) {
      if (!inlined) algorithm.name += ", reduced by a core";
      all.push_back(std::move(algorithm));
    }
  }
  return all;
}

}  // namespace hcclsim::test
