#include "clients/server/communication/schedules.hpp"

#include <cstddef>
#include <utility>

namespace hcclsim::clients {

const MadeSchedule& Schedules::of(const RankCall& call) {
  std::vector<MadeSchedule>& all = made_[call.group->number];
  const hccl::Determinism determinism = communicators_.determinism().value_or(call.group->config.determinism);
  for (const MadeSchedule& one : all) {
    const bool same =
        one.operation == call.operation && one.zero_copy == call.zero_copy && one.determinism == determinism;
    if (same) return one;
  }
  constexpr std::size_t most_kept = 256;
  if (all.size() >= most_kept) all.erase(all.begin());
  hccl::CollectiveRequest request{
      .operation = call.operation, .launch = core_.launch, .zero_copy = call.zero_copy, .config = call.group->config};
  request.config.determinism = determinism;
  MadeSchedule made{.operation = call.operation, .zero_copy = call.zero_copy, .determinism = determinism};
  const hccl::Topology topology = call.is_message() ? hccl::Topology{.ranks = 2} : call.group->topology;
  made.schedule = make_collective(request, topology, core_.platform.soc);
  if (call.operation.collective != hccl::Collective::barrier) {
    made.flow = std::make_shared<const hccl::DataFlow>(*made.schedule);
  }
  all.push_back(std::move(made));
  return all.back();
}

}  // namespace hcclsim::clients
