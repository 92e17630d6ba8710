#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/pipeline/schedule.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "models/graph.hpp"
#include "models/zoo/zoo.hpp"
#include "study/spec/parallel_spec.hpp"

/// Networks that were cut before, for experiments that follow each other in one process. To cut a network takes longer
/// than all else that is known of a step before its simulation, and plans that differ in stages' chunks, in what is
/// recomputed or in what replicas share have the same cut network.
namespace hcclsim::study {

class ShardedNetworks {
 public:
  /// What shard_network() (study/run/experiment/sharding/sharding.hpp) gives for a network that make_model() has made
  /// with `sizes`, to be trained or, `forward_only`, to be applied; notes too. The last ones are kept. Files that a
  /// network or its strategies come from must not change meanwhile.
  [[nodiscard]] std::shared_ptr<const hccl::ShardedGraph> shard(const models::Graph& network,
                                                                const models::ModelOptions& sizes,
                                                                const ParallelSpec& spec,
                                                                const hccl::PipelineShape& shape, Rank devices,
                                                                std::vector<std::string>& notes);

 private:
  struct Known {
    models::ModelOptions sizes;
    OperatorParallel operators;
    bool forward_only = false;
    Rank devices = 1;
    std::uint32_t stages = 1;  // a search of strategies asks for them
    std::shared_ptr<const hccl::ShardedGraph> network{};
    std::vector<std::string> notes{};
  };

  std::list<Known> known_;  // the last one that was asked for first
};

}  // namespace hcclsim::study
