#include "study/run/experiment/sharding/sharded_networks.hpp"

#include <algorithm>
#include <utility>

#include "study/run/experiment/sharding/sharding.hpp"

namespace hcclsim::study {
namespace {

/// Of a network of 40 layers each takes about a megabyte.
constexpr std::size_t most_known = 96;

}  // namespace

std::shared_ptr<const hccl::ShardedGraph> ShardedNetworks::shard(const models::Graph& network,
                                                                 const models::ModelOptions& sizes,
                                                                 const ParallelSpec& spec,
                                                                 const hccl::PipelineShape& shape, Rank devices,
                                                                 std::vector<std::string>& notes) {
  const auto same = [&](const Known& one) {
    return one.devices == devices && one.forward_only == shape.forward_only && one.sizes == sizes &&
           one.stages == shape.stages && one.operators == spec.operators;
  };
  const auto found = std::ranges::find_if(known_, same);
  if (found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
  } else {
    Known made{.sizes = sizes,
               .operators = spec.operators,
               .forward_only = shape.forward_only,
               .devices = devices,
               .stages = shape.stages};
    made.network = std::make_shared<const hccl::ShardedGraph>(shard_network(network, spec, shape, devices, made.notes));
    known_.push_front(std::move(made));
    if (known_.size() > most_known) known_.pop_back();
  }
  notes.insert(notes.end(), known_.front().notes.begin(), known_.front().notes.end());
  return known_.front().network;
}

}  // namespace hcclsim::study
