#include "tests/support/collectives/allreduce_algorithms.hpp"
#include "tests/support/built.hpp"

#include <fmt/format.h>

#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/levels/hierarchical.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/ring.hpp"

namespace hcclsim::test {

using namespace hccl;

std::map<std::string, AllReduce> allreduce_algorithms() {
  std::map<std::string, AllReduce> all;
  const auto any = [](Rank) { return true; };
  for (const bool inlined : {true, false}) {
    const std::string suffix = inlined ? "" : ", reduced by a core";
    all["ring" + suffix] = {[=](const Operation& spec) { return ring_allreduce(spec, inlined); }, any};
    all["one-shot" + suffix] = {[=](const Operation& spec) { return mesh_one_shot_allreduce(spec, inlined); }, any};
    all["two-shot" + suffix] = {[=](const Operation& spec) { return built<Algorithm::mesh_two_shot>(spec, inlined); },
                                any};
    all["halving" + suffix] = {[=](const Operation& spec) { return built<Algorithm::halving_doubling>(spec, inlined); },
                               any};
    all["double ring" + suffix] = {[=](const Operation& spec) {
                                     return build_algorithm(
                                         Algorithm::multi_ring, spec,
                                         {.inline_reduce = inlined, .rings = double_ring(spec.ranks)});
                                   },
                                   any};
    all["four rings" + suffix] = {[=](const Operation& spec) {
                                    return build_algorithm(Algorithm::multi_ring, spec,
                                                           {.inline_reduce = inlined, .rings = four_rings_of_910a()});
                                  },
                                  [](Rank ranks) { return ranks == 8; }};
    for (const Rank servers : {1U, 2U, 3U, 4U}) {
      for (const auto inner : {Algorithm::ring, Algorithm::multi_ring, Algorithm::mesh}) {
        for (const auto outer : {Algorithm::ring, Algorithm::halving_doubling}) {
          const std::string name =
              fmt::format("{} servers, {} and {}{}", servers, name_of(inner), name_of(outer), suffix);
          all[name] = {[=](const Operation& spec) {
                         const Rank inside = spec.ranks / servers;
                         return hierarchical(
                             spec, {{inside, inner, double_ring(inside), inlined}, {servers, outer, {}, !inlined}});
                       },
                       [=](Rank ranks) { return ranks % servers == 0; }};
        }
      }
    }
  }
  return all;
}

}  // namespace hcclsim::test
