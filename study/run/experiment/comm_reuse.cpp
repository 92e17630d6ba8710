#include "study/run/experiment/comm_reuse.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "study/run/experiment/experiment.hpp"

namespace hcclsim::study {

std::optional<hccl::CommReuse> comm_reuse_on(const LoadedPlatform& platform, const RunSpec& spec) {
  if (!spec.comm_reuse.has_value()) return std::nullopt;
  if (spec.step.compression.has_value()) {
    bad_input("unsupported", "--comm-reuse does not know the collectives of --compress yet; leave out one of them");
  }
  hccl::CommReuse reuse{.limit = *spec.comm_reuse, .groups = spec.group_parallel};
  if (platform.soc.streams > 0) reuse.streams.streams = platform.soc.streams;
  for (Rank rank = 0; rank < platform.cluster.size(); ++rank) {
    reuse.servers.push_back(platform.cluster.npu(rank).server);
  }
  return reuse;
}

void Experiment::share_communication() {
  if (!training.step.comm_reuse.has_value()) return;
  hccl::TrainingStep without = training;
  without.step.comm_reuse.reset();
  comm_reuse = comm_reuse_report(plan_training(cluster, soc, without), *training.step.comm_reuse);
  require_streams(*comm_reuse);
  std::vector<std::uint32_t> communicators(hbm_of_stages.size(), 0);
  for (const hccl::RoleAccount& role : comm_reuse->roles) {
    communicators.at(role.stage) = std::max(communicators.at(role.stage), role.shared);
  }
  for (std::size_t stage = 0; stage < hbm_of_stages.size(); ++stage) {
    hbm_of_stages[stage].communication += communicators[stage] * config.communicator_bytes();
  }
}

}  // namespace hcclsim::study
