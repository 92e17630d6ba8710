#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/nhr_v1.hpp"
#include "tests/support/built.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"

namespace hcclsim::test {

using namespace hccl;

std::vector<CollectiveAlgorithm> logarithmic_algorithms() {
  const auto any = [](Rank) { return true; };
  std::vector<CollectiveAlgorithm> all{
      {Collective::allgather, "halving-doubling allgather", built<Algorithm::halving_doubling>, any},
      {Collective::broadcast, "halving-doubling broadcast", built<Algorithm::halving_doubling>, any},
      {Collective::allgather, "nhr allgather", built<Algorithm::nhr>, any},
      {Collective::scatter, "nhr scatter", built<Algorithm::nhr>, any},
      {Collective::broadcast, "nhr broadcast", built<Algorithm::nhr>, any},
      {Collective::broadcast, "nhr-v1 broadcast", nhr_v1_broadcast, any},
      {Collective::allgather, "nhr-v1 allgather", built<Algorithm::nhr_v1>, any},
      {Collective::allgather, "nb allgather", built<Algorithm::nb>, any},
      {Collective::scatter, "nb scatter", built<Algorithm::nb>, any},
      {Collective::broadcast, "nb broadcast", built<Algorithm::nb>, any},
  };
  for (const bool inlined : {true, false}) {
    const std::string suffix = inlined ? "" : ", reduced by a core";
    const auto add = [&](Collective collective, const char* name, auto build, auto fits) {
      const auto bound = [=](const Operation& operation) { return build(operation, inlined); };
      all.push_back({collective, name + suffix, bound, fits});
    };
    add(Collective::reduce_scatter, "halving-doubling reduce-scatter", built<Algorithm::halving_doubling>, any);
    add(Collective::reduce, "halving-doubling reduce", built<Algorithm::halving_doubling>, any);
    add(Collective::reduce_scatter, "nhr reduce-scatter", built<Algorithm::nhr>, any);
    add(Collective::allreduce, "nhr allreduce", built<Algorithm::nhr>, any);
    add(Collective::reduce_scatter, "nhr-v1 reduce-scatter", built<Algorithm::nhr_v1>, any);
    add(Collective::allreduce, "nhr-v1 allreduce", built<Algorithm::nhr_v1>, any);
    add(Collective::reduce_scatter, "nb reduce-scatter", built<Algorithm::nb>, any);
    add(Collective::allreduce, "nb allreduce", built<Algorithm::nb>, any);
  }
  return all;
}

}  // namespace hcclsim::test
