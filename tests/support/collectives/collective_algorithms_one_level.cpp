#include <utility>

#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/barrier.hpp"
#include "hccl/collective/algorithm/direct.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "tests/support/built.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"

namespace hcclsim::test {

using namespace hccl;

std::vector<CollectiveAlgorithm> one_level_algorithms() {
  const auto any = [](Rank) { return true; };
  const auto eight = [](Rank ranks) { return ranks == 8; };
  std::vector<CollectiveAlgorithm> all{
      {Collective::allgather, "ring", built<Algorithm::ring>, any},
      {Collective::allgather, "double ring",
       [](const Operation& o) { return build_algorithm(Algorithm::multi_ring, o, {.rings = double_ring(o.ranks)}); },
       any},
      {Collective::allgather, "four rings",
       [](const Operation& o) { return build_algorithm(Algorithm::multi_ring, o, {.rings = four_rings_of_910a()}); },
       eight},
      {Collective::broadcast, "ring", built<Algorithm::ring>, any},
      {Collective::scatter, "ring", built<Algorithm::ring>, any},
      {Collective::gather, "ring", built<Algorithm::ring>, any},
      {Collective::broadcast, "double ring",
       [](const Operation& o) { return build_algorithm(Algorithm::multi_ring, o, {.rings = double_ring(o.ranks)}); },
       any},
      {Collective::broadcast, "four rings",
       [](const Operation& o) { return build_algorithm(Algorithm::multi_ring, o, {.rings = four_rings_of_910a()}); },
       eight},
      {Collective::scatter, "double ring",
       [](const Operation& o) { return build_algorithm(Algorithm::multi_ring, o, {.rings = double_ring(o.ranks)}); },
       any},
      {Collective::scatter, "four rings",
       [](const Operation& o) { return build_algorithm(Algorithm::multi_ring, o, {.rings = four_rings_of_910a()}); },
       eight},
      {Collective::gather, "double ring",
       [](const Operation& o) { return build_algorithm(Algorithm::multi_ring, o, {.rings = double_ring(o.ranks)}); },
       any},
      {Collective::gather, "four rings",
       [](const Operation& o) { return build_algorithm(Algorithm::multi_ring, o, {.rings = four_rings_of_910a()}); },
       eight},
      {Collective::allgather, "mesh", built<Algorithm::mesh>, any},
      {Collective::broadcast, "mesh", built<Algorithm::mesh>, any},
      {Collective::scatter, "mesh", built<Algorithm::mesh>, any},
      {Collective::gather, "mesh", built<Algorithm::mesh>, any},
      {Collective::alltoall, "mesh", built<Algorithm::mesh>, any},
      {Collective::broadcast, "star", built<Algorithm::star>, any},
      {Collective::scatter, "star", built<Algorithm::star>, any},
      {Collective::gather, "star", built<Algorithm::star>, any},
      {Collective::alltoall, "pairwise", built<Algorithm::pairwise>, any},
      {Collective::send_recv, "direct", direct_send_recv, any},
      {Collective::barrier, "direct", direct_barrier, any},
  };
  for (const bool inlined : {true, false}) {
    const std::vector<CollectiveAlgorithm> reducing{
        {Collective::reduce_scatter, "ring", [=](const Operation& o) { return built<Algorithm::ring>(o, inlined); },
         any},
        {Collective::reduce_scatter, "double ring",
         [=](const Operation& o) {
           return build_algorithm(Algorithm::multi_ring, o, {.inline_reduce = inlined, .rings = double_ring(o.ranks)});
         },
         any},
        {Collective::reduce_scatter, "four rings",
         [=](const Operation& o) {
           return build_algorithm(Algorithm::multi_ring, o, {.inline_reduce = inlined, .rings = four_rings_of_910a()});
         },
         eight},
        {Collective::reduce_scatter, "mesh", [=](const Operation& o) { return built<Algorithm::mesh>(o, inlined); },
         any},
        {Collective::reduce, "ring", [=](const Operation& o) { return built<Algorithm::ring>(o, inlined); }, any},
        {Collective::reduce, "double ring",
         [=](const Operation& o) {
           return build_algorithm(Algorithm::multi_ring, o, {.inline_reduce = inlined, .rings = double_ring(o.ranks)});
         },
         any},
        {Collective::reduce, "four rings",
         [=](const Operation& o) {
           return build_algorithm(Algorithm::multi_ring, o, {.inline_reduce = inlined, .rings = four_rings_of_910a()});
         },
         eight},
        {Collective::reduce, "mesh", [=](const Operation& o) { return built<Algorithm::mesh>(o, inlined); }, any},
        {Collective::reduce, "star", [=](const Operation& o) { return built<Algorithm::star>(o, inlined); }, any},
    };
    for (CollectiveAlgorithm algorithm : reducing) {
      if (!inlined) algorithm.name += ", reduced by a core";
      all.push_back(std::move(algorithm));
    }
  }
  return all;
}

}  // namespace hcclsim::test
