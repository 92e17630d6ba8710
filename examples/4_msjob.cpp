#include <fmt/format.h>

#include <string>
#include <vector>

#include "study/jobs/job/job.hpp"
#include "study/jobs/job/msjob/read_msjob.hpp"
#include "study/jobs/job/step_times.hpp"
#include "study/platform/on_platform.hpp"

namespace {

constexpr const char* yaml = R"(
apiVersion: mindspore.gitee.com/v1
kind: MSJob
metadata:
  name: resnet
spec:
  successPolicy: AllWorkers
  msReplicaSpecs:
    Scheduler:
      restartPolicy: ExitCode
      template:
        spec:
          containers:
            - name: mindspore
              image: mindspore:2.0
              env: [{name: MS_ENABLE_RECOVERY, value: "1"}]
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        spec:
          containers:
            - name: mindspore
              image: mindspore:2.0
              env: [{name: MS_ENABLE_RECOVERY, value: "1"}]
              resources: {limits: {huawei.com/Ascend910: 4}}
)";

}  // namespace

/// A job of Kubernetes that trains ResNet50 with two workers of four NPUs each. One worker is killed; the job goes on
/// from the last checkpoint.
int main() {
  const hcclsim::study::MsJob job = hcclsim::study::parse_msjob(yaml, "resnet.yaml");
  hcclsim::study::RunSpec step;
  step.platform.file = "atlas800-9000";
  step.step.framework = hcclsim::study::Framework::mindspore;
  step.step.hcom_parallel = true;
  hcclsim::study::JobScenario scenario;
  scenario.plan = {.steps = 1000, .checkpoint_every = 100};
  scenario.failures = {hcclsim::study::parse_job_failure("worker-1 exit 137 at 50s")};
  hcclsim::study::on_cluster(step.platform, [&](hcclsim::sim::Cluster& cluster) {
    std::vector<std::string> notes;
    const hcclsim::study::JobOutcome outcome =
        hcclsim::study::simulate_job(job, hcclsim::study::servers_of(cluster, {}), scenario,
                                     hcclsim::study::simulated_step_time(step, cluster, notes));
    for (const auto& [date, type] : outcome.status.history) fmt::print("{:7.3f} s {}\n", date, name_of(type));
    for (const hcclsim::study::TrainingRun& run : outcome.runs) {
      fmt::print("steps {} to {} of {:.3f} ms on {} NPUs: {}\n", run.first_step + 1, run.first_step + run.steps,
                 run.step_times.first * 1e3, run.hosts.npus.size(), run.why_ended);
    }
  });
}
