#pragma once

#include <string>
#include <vector>

#include "sim/cluster.hpp"
#include "study/jobs/job/msjob/msjob.hpp"
#include "study/jobs/job/training_hosts.hpp"
#include "study/jobs/ps/spec.hpp"
#include "study/spec/run_spec.hpp"

/// Where the time of a step of a job comes from.
namespace hcclsim::study {

/// The step of a run on exactly the NPUs of the workers, and with parameter servers on the CPUs of their servers where
/// there are some; simulated once for each choice of them, in a child of the process that has loaded the platform. With
/// compression of gradients, steps before its start are plain. `spec` is without NPUs and rank table. What a run notes
/// is added to `notes`, which must outlive the result, as the cluster must.
[[nodiscard]] StepTime simulated_step_time(const RunSpec& spec, sim::Cluster& cluster, std::vector<std::string>& notes);

/// Parameter servers on the CPUs of the servers that have their pods, and workers on exactly these NPUs.
[[nodiscard]] PsSpec servers_on(const TrainingHosts& hosts);

}  // namespace hcclsim::study
