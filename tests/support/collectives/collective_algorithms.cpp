#include "tests/support/collectives/collective_algorithms.hpp"

#include "tests/support/collectives/allreduce_algorithms.hpp"

namespace hcclsim::test {
namespace {

std::vector<CollectiveAlgorithm> allreduces() {
  std::vector<CollectiveAlgorithm> all;
  for (auto& [name, algorithm] : allreduce_algorithms()) {
    all.push_back({hccl::Collective::allreduce, name, algorithm.build, algorithm.fits});
  }
  return all;
}

}  // namespace

std::vector<CollectiveAlgorithm> collective_algorithms() {
  std::vector<CollectiveAlgorithm> all;
  for (const auto& family :
       {allreduces(), one_level_algorithms(), logarithmic_algorithms(), hierarchical_algorithms(), ahc_algorithms()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

hccl::Operation operation_of(const CollectiveAlgorithm& algorithm, Rank ranks, std::uint64_t elements) {
  return {.ranks = ranks,
          .elements = elements,
          .collective = algorithm.collective,
          .in_place = !hccl::counts_pairs(algorithm.collective)};
}

}  // namespace hcclsim::test
