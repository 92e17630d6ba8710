#include "study/sharding.hpp"

#include "hccl/parallel/sharding/sharded_stages.hpp"

namespace hcclsim::study {

hccl::ShardedGraph shard_network(const models::Graph& network, const ParallelSpec& spec, Rank devices,
                                 std::vector<std::string>& notes) {
  if (!spec.operators.cuts()) return hccl::replicated(network, devices);
  static_cast<void>(notes);
  return hccl::replicated(network, devices);
}

}  // namespace hcclsim::study
