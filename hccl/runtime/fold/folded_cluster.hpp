#pragma once

#include "sim/cluster.hpp"

namespace hcclsim::hccl {

/// While it lives, links of the cluster that carry the same have one that stands for them (`fold` null: they have
/// none).
class FoldedCluster {
 public:
  FoldedCluster(sim::Cluster& cluster, const sim::LinkFold* fold) : cluster_(fold != nullptr ? &cluster : nullptr) {
    if (cluster_ != nullptr) cluster_->fold(*fold);
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
