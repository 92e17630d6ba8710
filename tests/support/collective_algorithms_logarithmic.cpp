#include "hccl/collective/algorithm/halving_doubling.hpp"
#include "hccl/collective/algorithm/nb.hpp"
#include "hccl/collective/algorithm/nhr.hpp"
#include "hccl/collective/algorithm/nhr_v1.hpp"
#include "tests/support/collective_algorithms.hpp"

namespace hcclsim::test {

using namespace hccl;

std::vector<CollectiveAlgorithm> logarithmic_algorithms() {
  const auto any = [](Rank) { return true; };
  std::vector<CollectiveAlgorithm> all{
      {Collective::allgather, "halving-doubling allgather", halving_doubling_all_gather, any},
      {Collective::broadcast, "halving-doubling broadcast", halving_doubling_broadcast, any},
      {Collective::allgather, "nhr allgather", nhr_all_gather, any},
      {Collective::scatter, "nhr scatter", nhr_scatter, any},
      {Collective::broadcast, "nhr broadcast", nhr_broadcast, any},
      {Collective::broadcast, "nhr-v1 broadcast", nhr_v1_broadcast, any},
      {Collective::allgather, "nhr-v1 allgather", nhr_v1_all_gather, any},
      {Collective::allgather, "nb allgather", nb_all_gather, any},
      {Collective::scatter, "nb scatter", nb_scatter, any},
      {Collective::broadcast, "nb broadcast", nb_broadcast, any},
  };
  for (const bool inlined : {true, false}) {
    const std::string suffix = inlined ? "" : ", reduced by a core";
    const auto add = [&](Collective collective, const char* name, auto build, auto fits) {
      const auto bound = [=](const Operation& operation) { return build(operation, inlined); };
      all.push_back({collective, name + suffix, bound, fits});
    };
    add(Collective::reduce_scatter, "halving-doubling reduce-scatter", halving_doubling_reduce_scatter, any);
    add(Collective::reduce, "halving-doubling reduce", halving_doubling_reduce, any);
    add(Collective::reduce_scatter, "nhr reduce-scatter", nhr_reduce_scatter, any);
    add(Collective::allreduce, "nhr allreduce", nhr_allreduce, any);
    add(Collective::reduce_scatter, "nhr-v1 reduce-scatter", nhr_v1_reduce_scatter, any);
    add(Collective::allreduce, "nhr-v1 allreduce", nhr_v1_allreduce, any);
    add(Collective::reduce_scatter, "nb reduce-scatter", nb_reduce_scatter, any);
    add(Collective::allreduce, "nb allreduce", nb_allreduce, any);
  }
  return all;
}

}  // namespace hcclsim::test
