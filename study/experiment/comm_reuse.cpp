#include "study/experiment/comm_reuse.hpp"

#include "base/error.hpp"
#include "study/experiment/experiment.hpp"

namespace hcclsim::study {

std::optional<hccl::CommReuse> comm_reuse_on(const LoadedPlatform& platform, const RunSpec& spec) {
  if (!spec.comm_reuse.has_value()) return std::nullopt;
  if (spec.compression.has_value()) {
    bad_input("unsupported", "--comm-reuse does not know the collectives of --compress yet; leave out one of them");
  }
  hccl::CommReuse reuse{.limit = *spec.comm_reuse, .groups = spec.group_parallel};
  if (platform.soc.streams > 0) reuse.streams.streams = platform.soc.streams;
  for (Rank rank = 0; rank < platform.cluster.size(); ++rank) {
    reuse.servers.push_back(platform.cluster.npu(rank).server);
  }
  return reuse;
}

std::optional<hccl::CommReuseReport> comm_reuse_of(Experiment& experiment) {
  if (!experiment.training.comm_reuse.has_value()) return std::nullopt;
  hccl::TrainingOptions without = experiment.training;
  without.comm_reuse.reset();
  const hccl::Plan plan = plan_training(experiment.cluster, experiment.program, experiment.soc, without);
  hccl::CommReuseReport report = comm_reuse_report(plan, *experiment.training.comm_reuse);
  require_streams(report);
  return report;
}

}  // namespace hcclsim::study
