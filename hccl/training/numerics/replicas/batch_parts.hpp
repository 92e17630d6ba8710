#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "models/data/batch.hpp"
#include "models/graph.hpp"

/// What each rank of a stage reads of a batch when operators are cut over the ranks: they read parts of one batch, some
/// the same.
namespace hcclsim::hccl {

class BatchParts {
 public:
  /// What ranks of the first and of the last stage compute.
  BatchParts(const ShardedGraph& first, const ShardedGraph& last);

  /// The batch that is being read.
  models::Batch whole;

  /// Copies what a rank reads.
  void take(Rank rank, models::Batch& batch) const;

 private:
  TensorLayout input_;
  std::vector<TensorLayout> labels_;  // of each tensor of logits
};

}  // namespace hcclsim::hccl
