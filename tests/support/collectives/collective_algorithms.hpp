#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hccl/schedule/schedule.hpp"

namespace hcclsim::test {

/// A way of carrying out a collective on the work memory (in place, but for alltoall and send-recv), and whether it can
/// be built for a number of ranks.
struct CollectiveAlgorithm {
  hccl::Collective collective = hccl::Collective::allreduce;
  std::string name;                                             ///< with its options, for people
  std::function<hccl::Schedule(const hccl::Operation&)> build;  ///< of the collective above
  std::function<bool(Rank ranks)> fits;
  bool takes_counts = true;  ///< of collectives that may have blocks that differ
};

/// Over several levels (hccl/collective/algorithm/levels/hierarchical.hpp).
[[nodiscard]] std::vector<CollectiveAlgorithm> hierarchical_algorithms();

/// AHC over servers that differ in size.
[[nodiscard]] std::vector<CollectiveAlgorithm> ahc_algorithms();

/// Every algorithm of hccl/collective with every option, for all collectives. Each family of algorithms has a function
/// of its own, in a file of its own.
[[nodiscard]] std::vector<CollectiveAlgorithm> collective_algorithms();
/// Of them: halving-doubling, NHR, NHR_V1, NB.
[[nodiscard]] std::vector<CollectiveAlgorithm> logarithmic_algorithms();

/// Rings, mesh, star, pairwise, direct: all algorithms of one level that do not halve, but for allreduce.
[[nodiscard]] std::vector<CollectiveAlgorithm> one_level_algorithms();

/// The in-place form that `build` takes for so many ranks, or the out-of-place form for alltoall and send-recv.
[[nodiscard]] hccl::Operation operation_of(const CollectiveAlgorithm& algorithm, Rank ranks, std::uint64_t elements);

}  // namespace hcclsim::test
