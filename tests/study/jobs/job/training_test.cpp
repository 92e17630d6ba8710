#include "study/jobs/job/training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "study/jobs/job/simulate_job.hpp"
#include "study/jobs/job/step_times.hpp"
#include "tests/study/jobs/job/sample_jobs.hpp"
#include "tests/support/refusal.hpp"

/// The dynamic cluster that the processes of a job form (docs/msjob.md).
namespace hcclsim::study {
namespace {

using test::event_of;
using test::pod_of;
using test::sample_job;
using test::sample_scenario;
using test::sample_servers;
using test::sample_step;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string keep_pods = "  runPolicy: {cleanPodPolicy: None}\n";

std::vector<test::RoleText> roles_with(const std::string& environment, const std::string& restart = "Never") {
  return {{"Scheduler", 1, restart, "", environment}, {"Worker", 2, restart, "huawei.com/Ascend910: 2", environment}};
}

JobOutcome outcome_on_two_servers(const MsJob& job, const JobScenario& scenario) {
  return simulate_job(job, sample_servers(2, 4), scenario, sample_step);
}

TEST(JobTraining, BeginsWhenAllHaveRegistered) {
  // The second worker's server has no image yet when the first one is up: it is the same date; a slower image is not.
  JobScenario scenario = sample_scenario();
  scenario.packing = PodPacking::spread;
  const JobOutcome outcome = outcome_on_two_servers(sample_job(roles_with("")), scenario);
  ASSERT_EQ(outcome.runs.size(), 1U);
  EXPECT_EQ(outcome.runs[0].start, 42.0);
  EXPECT_THAT(outcome.runs[0].hosts.npus, ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(outcome.runs[0].hosts.workers, ElementsAre(0, 1));
}

TEST(JobTraining, RanksFollowTheOrderOfRegistration) {
  // Worker 0 fails before the cluster has come together and is started again, after worker 1.
  const JobOutcome outcome =
      outcome_on_two_servers(sample_job(roles_with("", "OnFailure")), sample_scenario({"worker-0 exit 1 at 35s"}));
  ASSERT_EQ(outcome.runs.size(), 1U);
  EXPECT_EQ(outcome.runs[0].start, 55.0);  // 35 + 10 of back-off + 10
  EXPECT_THAT(outcome.runs[0].hosts.npus, ElementsAre(2, 3, 0, 1));
}

TEST(JobTraining, ServersAndSchedulerEndAfterTheWorkersAtTheNextCheck) {
  const JobOutcome outcome = outcome_on_two_servers(
      sample_job({{"Scheduler"}, {"PS", 1}, {"Worker", 1, "Never", "cpu: 1"}}, keep_pods), sample_scenario());
  EXPECT_EQ(pod_of(outcome, "worker-0").stages.back().date, 52.0);
  EXPECT_EQ(pod_of(outcome, "ps-0").stages.back().date, 54.0);
  EXPECT_EQ(pod_of(outcome, "scheduler-0").stages.back().date, 54.0);
  EXPECT_EQ(pod_of(outcome, "scheduler-0").stage(), PodStage::succeeded);
}

TEST(JobTraining, WithoutRecoveryALostNodeEndsAllWhenItsHeartbeatsAreMissed) {
  const JobOutcome outcome =
      outcome_on_two_servers(sample_job(roles_with(""), keep_pods), sample_scenario({"worker-1 exit 1 at 47s"}));
  // Its last beat was at 45 s, so it is missed at 345 s, which is a date of the checks.
  EXPECT_EQ(pod_of(outcome, "worker-0").stages.back().date, 345.0);
  EXPECT_EQ(pod_of(outcome, "worker-0").exit_code, 1);
  EXPECT_EQ(pod_of(outcome, "scheduler-0").exit_code, 1);
  EXPECT_EQ(event_of(outcome, "NodeTimeout")->first, 345.0);
  EXPECT_EQ(outcome.runs[0].steps, 50U);
  EXPECT_EQ(outcome.runs[0].why_ended, "job-worker-1 is gone");
  const JobOutcome shorter = outcome_on_two_servers(sample_job(roles_with("MS_NODE_TIMEOUT=31"), keep_pods),
                                                    sample_scenario({"worker-1 exit 1 at 47s"}));
  EXPECT_EQ(pod_of(shorter, "worker-0").stages.back().date, 78.0);  // 45 + 31 = 76, the next check
}

TEST(JobTraining, TheNodeTimeoutIsThatOfTheScheduler) {
  std::vector<test::RoleText> roles = roles_with("");
  roles[0].environment = "MS_NODE_TIMEOUT=31";
  const JobScenario scenario = sample_scenario({"worker-1 exit 1 at 47s"});
  EXPECT_EQ(pod_of(outcome_on_two_servers(sample_job(roles, keep_pods), scenario), "worker-0").stages.back().date,
            78.0);
  std::swap(roles[0].environment, roles[1].environment);
  EXPECT_EQ(pod_of(outcome_on_two_servers(sample_job(roles, keep_pods), scenario), "worker-0").stages.back().date,
            345.0);
}

TEST(JobTraining, NobodyMissesANodeOfAClusterThatIsGone) {
  const JobOutcome outcome =
      outcome_on_two_servers(sample_job(roles_with("")), sample_scenario({"worker-1 exit 1 at 47s"}));
  EXPECT_EQ(outcome.status.completion, 47.0);
  EXPECT_EQ(event_of(outcome, "NodeTimeout"), nullptr);
  EXPECT_EQ(outcome.end, 47.0) << "all pods are deleted then";
}

TEST(JobTraining, AJobThatWaitsSaysForWhom) {
  const JobOutcome outcome =
      outcome_on_two_servers(sample_job(roles_with("MS_ENABLE_RECOVERY=1"), "  enableDynamicWorker: true\n"),
                             sample_scenario({"worker-1 exit 1 at 47s"}));
  EXPECT_EQ(outcome.ending, JobEnding::stuck);
  EXPECT_THAT(outcome.waits,
              ElementsAre("the cluster waits for job-worker-1, which is gone and which nobody restarts"));
}

TEST(JobTraining, AJobThatIsCutOffSaysWhatItWaitsFor) {
  const MsJob job = sample_job({{"Scheduler"}, {"Worker", 1, "Always", "cpu: 1"}});
  const auto waits_at = [&](Seconds until) {
    JobScenario scenario = sample_scenario();
    scenario.until = until;
    const JobOutcome outcome = outcome_on_two_servers(job, scenario);
    EXPECT_EQ(outcome.ending, JobEnding::out_of_time);
    EXPECT_EQ(outcome.end, until);
    return outcome.waits;
  };
  EXPECT_THAT(waits_at(31), ElementsAre("pod job-scheduler-0 is Pending: its container is made",
                                        "pod job-worker-0 is Pending: its container is made"));
  EXPECT_THAT(waits_at(40), ElementsAre("the process of pod job-scheduler-0 starts, or is to be told what to do"));
  EXPECT_THAT(waits_at(50), ElementsAre("training is under way"));
  EXPECT_THAT(waits_at(60), ElementsAre("pod job-worker-0 is in back-off: its container ended with exit code 0 and is "
                                        "to be started again"));
  EXPECT_THAT(waits_at(300),
              ElementsAre("the cluster waits for job-scheduler-0, which has succeeded and is not started again"));
}

TEST(JobTraining, AJobThatHasEndedEndsWithTheLastThingThatHappened) {
  JobScenario scenario = sample_scenario();
  for (const Seconds until : {500.0, 2000.0}) {
    scenario.until = until;  // the topology time-out, of which nothing comes any more, is at 1842 s
    EXPECT_EQ(outcome_on_two_servers(sample_job(roles_with(""), keep_pods), scenario).end, 54.0);
  }
}

TEST(JobTraining, WithRecoveryTheOthersWaitAndGoOnFromTheLastCheckpoint) {
  JobScenario scenario = sample_scenario({"worker-1 exit 137 at 46.95s"});
  scenario.plan.checkpoint_every = 20;
  const JobOutcome outcome =
      outcome_on_two_servers(sample_job(roles_with("MS_ENABLE_RECOVERY=1", "ExitCode")), scenario);
  ASSERT_EQ(outcome.runs.size(), 2U);
  EXPECT_EQ(outcome.runs[0].steps, 49U);
  EXPECT_EQ(outcome.runs[1].first_step, 40U);
  EXPECT_DOUBLE_EQ(outcome.runs[1].start, 46.95 + 2 + 10);
  EXPECT_EQ(outcome.runs[1].steps, 60U);
  EXPECT_DOUBLE_EQ(*outcome.status.completion, 46.95 + 12 + 6);
  // It has the rank of the lost one.
  EXPECT_EQ(outcome.runs[1].hosts.npus, outcome.runs[0].hosts.npus);
}

TEST(JobTraining, WithoutRecoveryAProcessThatComesBackIsNotTaken) {
  const JobOutcome outcome =
      outcome_on_two_servers(sample_job(roles_with("", "OnFailure")), sample_scenario({"worker-1 exit 1 at 47s"}));
  // All end at 345 s and are started again 10 s later (the second back-off of worker 1 is 20 s); worker 1, which has
  // run for 288 s, is the last one up.
  ASSERT_EQ(outcome.runs.size(), 2U);
  EXPECT_EQ(outcome.runs[1].start, 375.0);
  EXPECT_EQ(outcome.runs[1].first_step, 0U);
  EXPECT_TRUE(outcome.status.has(JobConditionType::succeeded));
}

TEST(JobTraining, ATopologyTimeoutDoesNotForgetALostNode) {
  JobScenario scenario = sample_scenario({"worker-1 exit 1 at 50s"});
  scenario.plan.steps = 1000;
  const JobOutcome outcome =
      outcome_on_two_servers(sample_job(roles_with("MS_TOPO_TIMEOUT=100", "OnFailure")), scenario);
  EXPECT_EQ(event_of(outcome, "TopologyTimeout")->first, 172.0) << "its new process, up at 70 s";
  ASSERT_NE(event_of(outcome, "NodeTimeout"), nullptr);
  EXPECT_EQ(event_of(outcome, "NodeTimeout")->first, 348.0) << "the last beat was at 48 s";
  EXPECT_TRUE(outcome.status.has(JobConditionType::succeeded));
}

TEST(JobTraining, ALostSchedulerStopsTrainingToo) {
  const JobOutcome outcome = outcome_on_two_servers(sample_job(roles_with("MS_ENABLE_RECOVERY=1", "ExitCode")),
                                                    sample_scenario({"scheduler-0 exit 137 at 45s"}));
  ASSERT_EQ(outcome.runs.size(), 2U);
  EXPECT_EQ(outcome.runs[0].end, 45.0);
  EXPECT_EQ(outcome.runs[1].start, 57.0);
  EXPECT_EQ(outcome.services.size(), 1U);
}

TEST(JobTraining, AClusterThatDoesNotComeTogetherEndsByItsTopologyTimeout) {
  std::vector<test::RoleText> roles = roles_with("MS_TOPO_TIMEOUT=100");
  roles[1].replicas = 5;  // of which four fit
  const JobOutcome outcome = outcome_on_two_servers(sample_job(roles), sample_scenario());
  EXPECT_EQ(outcome.status.completion, 144.0);  // 42 + 100, at a check
  EXPECT_TRUE(outcome.runs.empty());
  EXPECT_THAT(event_of(outcome, "TopologyTimeout")->message, HasSubstr("has not come together in 100 s"));
  EXPECT_THAT(event_of(outcome, "FailedScheduling")->message, HasSubstr("Insufficient huawei.com/Ascend910"));
}

TEST(JobTraining, ASecondSchedulerIsAloneAndTimesOut) {
  const JobOutcome outcome = outcome_on_two_servers(
      sample_job({{"Scheduler", 2}, {"Worker", 1, "Never", "cpu: 1"}}, keep_pods), sample_scenario());
  EXPECT_EQ(outcome.status.completion, 52.0);
  EXPECT_EQ(outcome.services.size(), 2U);
  EXPECT_EQ(pod_of(outcome, "scheduler-1").stages.back().date, 1842.0);
  EXPECT_EQ(pod_of(outcome, "scheduler-1").exit_code, 1);
}

TEST(JobTraining, WrongConfigurationsAreExceptions) {
  const JobOutcome no_workers = outcome_on_two_servers(sample_job({{"Scheduler"}, {"PS", 2}}), sample_scenario());
  EXPECT_EQ(no_workers.status.completion, 42.0);
  EXPECT_THAT(event_of(no_workers, "Exception")->message, HasSubstr("MS_WORKER_NUM is 0 and MS_SERVER_NUM is 2"));
  std::string text = test::msjob_text(roles_with(""));
  const std::string image = "image: mindspore:2.0\n";
  text.insert(text.find(image) + image.size(), "              ports: [{name: msjob-port, containerPort: 80}]\n");
  const JobOutcome port = outcome_on_two_servers(parse_msjob(text, "job.yaml"), sample_scenario());
  EXPECT_THAT(event_of(port, "Exception")->message, HasSubstr("MS_SCHED_PORT is 80; accepted: 1024 to 65535"));
}

TEST(JobTraining, WorkersWithoutASchedulerTrainByThemselves) {
  std::vector<TrainingHosts> asked;
  const auto step = [&](const TrainingHosts& hosts) {
    asked.push_back(hosts);
    return StepTimes{.first = 0.2};
  };
  const JobOutcome outcome = simulate_job(sample_job({{"Worker", 2, "Never", "huawei.com/Ascend910: 2"}}),
                                          sample_servers(1, 4), sample_scenario(), step);
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_THAT(asked[0].npus, ElementsAre(0, 1));
  EXPECT_THAT(asked[1].npus, ElementsAre(2, 3));
  EXPECT_EQ(outcome.runs[0].worker, "job-worker-0");
  EXPECT_EQ(outcome.status.completion, 62.0);
}

TEST(JobTraining, StepsOfACompressedTrainingChangeTheirTime) {
  const StepTimes times{.first = 0.2, .change_at = 10, .then = 0.1};
  EXPECT_DOUBLE_EQ(times.of(0, 8), 1.6);
  EXPECT_DOUBLE_EQ(times.of(0, 100), 2 + 9);
  EXPECT_DOUBLE_EQ(times.of(5, 10), 1 + 0.5);
  EXPECT_DOUBLE_EQ(times.of(20, 10), 1);
  EXPECT_DOUBLE_EQ(times.done_in(0, 1), 5);
  EXPECT_DOUBLE_EQ(times.done_in(0, 3), 20);
  EXPECT_DOUBLE_EQ(times.done_in(20, 3), 30);
  const JobOutcome outcome = simulate_job(sample_job(roles_with("")), sample_servers(2, 4), sample_scenario(),
                                          [&](const TrainingHosts&) { return times; });
  ASSERT_EQ(outcome.runs.size(), 1U);
  EXPECT_DOUBLE_EQ(outcome.runs[0].end.value(), 42 + 2 + 9);
}

TEST(JobTraining, ImagesThatAreNeverPulled) {
  std::string text = test::msjob_text({{"Worker", 1, "Never", "cpu: 1"}});
  const std::string image = "image: mindspore:2.0\n";
  text.insert(text.find(image) + image.size(), "              imagePullPolicy: Never\n");
  const MsJob job = parse_msjob(text, "job.yaml");
  const JobOutcome stuck = outcome_on_two_servers(job, sample_scenario());
  EXPECT_EQ(stuck.ending, JobEnding::stuck);
  EXPECT_THAT(stuck.waits, ElementsAre(HasSubstr("image mindspore:2.0 is not on the server")));
  JobScenario there = sample_scenario();
  there.delays.image_pull = 0;
  EXPECT_EQ(outcome_on_two_servers(job, there).status.completion, 22.0);
}

}  // namespace
}  // namespace hcclsim::study
