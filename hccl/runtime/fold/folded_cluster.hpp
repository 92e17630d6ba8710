#pragma once

#include <optional>

#include "hccl/runtime/fold/rank_orbits.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::hccl {

/// While it lives, links of the cluster that carry the same have one that stands for them, if ranks are folded.
class FoldedCluster {
 public:
  FoldedCluster(sim::Cluster& cluster, const std::optional<RankOrbits>& orbits)
      : cluster_(orbits.has_value() ? &cluster : nullptr) {
    if (cluster_ != nullptr) cluster_->fold(orbits->links());
  }
  ~FoldedCluster() {
    if (cluster_ != nullptr) cluster_->unfold();
  }
  FoldedCluster(const FoldedCluster&) = delete;
  FoldedCluster& operator=(const FoldedCluster&) = delete;

 private:
  sim::Cluster* cluster_;
};

}  // namespace hcclsim::hccl
