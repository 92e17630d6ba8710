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
  /// `network`: the whole; `stage`: what a rank computes of it.
  BatchParts(const models::Graph& network, const ShardedGraph& stage);

  /// The batch that is being read.
  models::Batch whole;

  /// Copies what a rank reads.
  void take(Rank rank, models::Batch& batch) const;
  /// The first sample of a rank.
  [[nodiscard]] std::uint32_t first_sample(Rank rank) const { return input_.offsets(rank).front(); }
  /// Of one rank.
  [[nodiscard]] std::uint32_t label_rows() const;

 private:
  TensorLayout input_;
  std::vector<TensorLayout> labels_;  // of each tensor of logits
};

}  // namespace hcclsim::hccl
