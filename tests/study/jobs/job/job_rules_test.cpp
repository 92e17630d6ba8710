#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "study/jobs/job/cluster/job_operator.hpp"
#include "study/jobs/job/simulate_job.hpp"
#include "tests/study/jobs/job/sample_jobs.hpp"
#include "tests/support/refusal.hpp"

/// The rules of MSJobs, by their numbers in docs/rules.md. Times are computed by hand: processes register at 42 s,
/// 100 steps of 0.1 s end at 52 s, the scheduler looks every 3 s from 42 s on and so ends at 54 s.
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
using testing::Pair;
using Type = JobConditionType;

JobOutcome outcome_of(const MsJob& job, const JobScenario& scenario = sample_scenario(), std::uint32_t servers = 1) {
  return simulate_job(job, sample_servers(servers, 8), scenario, sample_step);
}

std::vector<std::pair<Seconds, Type>> history(const JobOutcome& outcome) { return outcome.status.history; }

const test::RoleText scheduler{"Scheduler"};
test::RoleText workers(std::uint32_t replicas, const std::string& restart = "Never",
                       const std::string& environment = "") {
  return {"Worker", replicas, restart, "huawei.com/Ascend910: 1", environment};
}

// --- Validation: all that is refused stands in tests/data/msjobs/refused

TEST(MsJobRules, K10_1_ARoleNeedsAContainerNamedMindsporeWithAnImage) {
  const auto refused = [](const std::string& from, const std::string& to) {
    std::string text = test::msjob_text({scheduler, workers(1)});
    text.replace(text.find(from), from.size(), to);
    return hcclsim::test::refusal("msjob", [&] { static_cast<void>(parse_msjob(text, "job.yaml")); });
  };
  EXPECT_THAT(refused("msReplicaSpecs", "x"), HasSubstr("job.yaml:6: spec.x: there is no such key"));
  EXPECT_THAT(refused("name: mindspore", "name: main"), HasSubstr("no container is named mindspore"));
  EXPECT_THAT(refused("image: mindspore:2.0", "image: ''"), HasSubstr("a container needs an image"));
  EXPECT_THAT(refused("Worker", "scheduler"), HasSubstr("more than one Scheduler role"));
  // The check counts roles, not replicas.
  EXPECT_EQ(sample_job({{"Scheduler", 2}, workers(1)}).replicas_of(JobRole::scheduler), 2U);
}

TEST(MsJobRules, K10_2_ReplicasAreWholeNumbersFrom0On) {
  for (const char* const wrong : {"-1", "1.5", "'2'", "two"}) {
    std::string text = test::msjob_text({workers(7)});
    text.replace(text.find("replicas: 7"), 11, std::string("replicas: ") + wrong);
    EXPECT_THAT(hcclsim::test::refusal("msjob", [&] { static_cast<void>(parse_msjob(text, "job.yaml")); }),
                HasSubstr("job.yaml:8: spec.msReplicaSpecs.Worker.replicas: "))
        << wrong;
  }
}

// --- Reconciliation

TEST(MsJobRules, K10_3_ConditionsStatusAndDatesOfAJobThatSucceeds) {
  const JobOutcome outcome = outcome_of(sample_job({scheduler, workers(4)}, "  successPolicy: AllWorkers\n"));
  EXPECT_THAT(history(outcome),
              ElementsAre(Pair(0.0, Type::created), Pair(32.0, Type::running), Pair(52.0, Type::succeeded)));
  ASSERT_EQ(outcome.status.conditions.size(), 3U);
  EXPECT_TRUE(outcome.status.conditions[0].status);
  EXPECT_FALSE(outcome.status.conditions[1].status);  // Running, which it is not any more
  EXPECT_EQ(outcome.status.conditions[1].last_transition, 52.0);
  EXPECT_EQ(outcome.status.state(), "Succeeded");
  EXPECT_EQ(outcome.status.start, 0.0);
  EXPECT_EQ(outcome.status.completion, 52.0);
  EXPECT_EQ(outcome.status.last_reconcile, 52.0);
  EXPECT_EQ(outcome.status.of(JobRole::worker), (ReplicaStatus{0, 4, 0}));
  // Success counts what still runs as succeeded.
  EXPECT_EQ(outcome.status.of(JobRole::scheduler), (ReplicaStatus{0, 1, 0}));
  ASSERT_EQ(outcome.runs.size(), 1U);
  EXPECT_EQ(outcome.runs[0].start, 42.0);
  EXPECT_EQ(outcome.runs[0].end, 52.0);
  EXPECT_THAT(outcome.runs[0].hosts.npus, ElementsAre(0, 1, 2, 3));
}

TEST(MsJobRules, K10_3_OnlyTheSchedulerHasAServiceAndItIsThereBeforeThePods) {
  const JobOutcome outcome = outcome_of(sample_job({{"PS", 2}, workers(2), scheduler}));
  ASSERT_EQ(outcome.services.size(), 1U);
  EXPECT_EQ(outcome.services[0].name, "job-scheduler-0");
  EXPECT_EQ(outcome.services[0].port, 2222);
  std::vector<std::string> names;
  for (const Pod& pod : outcome.pods) names.push_back(pod.name);
  EXPECT_THAT(names, ElementsAre("job-scheduler-0", "job-ps-0", "job-ps-1", "job-worker-0", "job-worker-1"));
  for (const Pod& pod : outcome.pods) {
    const std::string host = pod.role == JobRole::scheduler ? pod.ip : outcome.services[0].cluster_ip;
    EXPECT_THAT(pod.environment, testing::Contains(Pair("MS_SCHED_HOST", host))) << pod.name;
    EXPECT_THAT(pod.environment, testing::Contains(Pair("MS_NODE_ID", pod.name)));
    EXPECT_THAT(pod.environment, testing::Contains(Pair("MS_WORKER_NUM", "2")));
  }
}

TEST(MsJobRules, K10_3_PodsOfNoIndexAreDeletedAndSeveralOfOneAreWarnedOf) {
  const MsJob job = sample_job({workers(2)});
  JobState state(job);
  JobOperator reconciler(state, false, [&](Pod& pod) { pod.deleted = state.now(); });
  while (reconciler.reconcile()) {
  }
  ASSERT_EQ(state.pods.size(), 2U);
  for (const std::uint32_t index : {2U, 1U}) {
    Pod pod{.role = JobRole::worker, .index = index, .name = pod_name(job, JobRole::worker, index)};
    pod.enter(0, PodStage::unscheduled);
    state.pods.push_back(pod);
  }
  while (reconciler.reconcile()) {
  }
  EXPECT_EQ(state.pods.size(), 4U);
  EXPECT_FALSE(state.pods[2].is_live());  // index 2 of 2 replicas
  EXPECT_TRUE(state.pods[3].is_live());
  EXPECT_TRUE(std::any_of(state.events.begin(), state.events.end(),
                          [](const JobEvent& event) { return event.reason == "TooManyPods" && event.warning; }));
  state.pods[0].deleted = 0;  // what is missing is created
  while (reconciler.reconcile()) {
  }
  EXPECT_EQ(state.pods.back().name, "job-worker-0");
}

TEST(MsJobRules, K10_3_GangSchedulingPlacesAllOrNone) {
  const std::string policy = "  runPolicy:\n    schedulingPolicy: {}\n    activeDeadlineSeconds: 100\n";
  const JobOutcome fits = outcome_of(sample_job({scheduler, workers(8)}, policy));
  EXPECT_TRUE(fits.status.has(Type::succeeded));
  EXPECT_EQ(fits.pod_group->min_member, 9U);
  EXPECT_TRUE(fits.pod_group->deleted.has_value());
  // Nine NPUs are not there: nobody gets one, where without a gang eight would.
  const JobOutcome held = outcome_of(sample_job({scheduler, workers(9)}, policy));
  EXPECT_TRUE(held.status.has(Type::failed));
  EXPECT_TRUE(std::none_of(held.pods.begin(), held.pods.end(), [](const Pod& pod) { return pod.seat.has_value(); }));
  EXPECT_THAT(pod_of(held, "worker-0").why,
              HasSubstr("pod group is not ready: fewer than its 10 pods fit at the same time (all that wait need more "
                        "huawei.com/Ascend910 than is free)"));
  // minAvailable says how many are enough.
  const JobOutcome part = outcome_of(sample_job({scheduler, workers(9)},
                                                "  runPolicy:\n    schedulingPolicy: {minAvailable: 5}\n"
                                                "    activeDeadlineSeconds: 100\n"));
  EXPECT_EQ(std::count_if(part.pods.begin(), part.pods.end(), [](const Pod& pod) { return pod.seat.has_value(); }), 9);
}

TEST(MsJobRules, K10_3_PodsAreCreatedOnlyWhenThePodGroupIsOutOfPending) {
  const JobOutcome outcome = outcome_of(sample_job(
      {scheduler, workers(2)}, "  runPolicy:\n    schedulingPolicy: {minResources: {huawei.com/Ascend910: 9}}\n"));
  EXPECT_TRUE(outcome.pods.empty());
  EXPECT_EQ(outcome.ending, JobEnding::stuck);
  EXPECT_THAT(outcome.waits, ElementsAre("the pod group is Pending: minResources: the servers have not enough "
                                         "huawei.com/Ascend910 free"));
}

TEST(MsJobRules, K10_3_APodTemplateWithAPolicyOfItsOwnIsWarnedOf) {
  test::RoleText role = workers(1);
  role.pod = "restartPolicy: Always";
  const JobOutcome outcome = outcome_of(sample_job({role}));
  ASSERT_NE(event_of(outcome, "SettedPodTemplateRestartPolicy"), nullptr);
  EXPECT_TRUE(event_of(outcome, "SettedPodTemplateRestartPolicy")->warning);
  EXPECT_TRUE(outcome.status.has(Type::succeeded));  // the role's Never counts
  role.pod = "schedulerName: mine";
  const MsJob job = sample_job({role});
  EXPECT_EQ(event_of(outcome_of(job), "SettedPodTemplateSchedulerName"), nullptr);
  JobScenario gang = sample_scenario();
  gang.gang = true;
  EXPECT_NE(event_of(outcome_of(job, gang), "SettedPodTemplateSchedulerName"), nullptr);
}

TEST(MsJobRules, K10_3_CleanPodPolicySaysWhichPodsAreDeleted) {
  const auto live = [](const std::string& policy) {
    const JobOutcome outcome =
        outcome_of(sample_job({scheduler, workers(2)}, "  runPolicy:\n    cleanPodPolicy: " + policy + "\n"));
    std::vector<std::string> names;
    for (const Pod& pod : outcome.pods) {
      if (pod.is_live()) names.push_back(pod.name);
    }
    const bool service = !outcome.services[0].deleted.has_value();
    return std::pair(names, service);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(live("All"), std::pair(Names(), false));
  EXPECT_EQ(live("Running"), std::pair((Names{"job-worker-0", "job-worker-1"}), false));
  EXPECT_EQ(live("None"), std::pair((Names{"job-scheduler-0", "job-worker-0", "job-worker-1"}), true));
}

TEST(MsJobRules, K10_3_TheJobIsDeletedWhenItsTimeToLiveIsOver) {
  const JobOutcome outcome =
      outcome_of(sample_job({scheduler, workers(2)}, "  runPolicy: {ttlSecondsAfterFinished: 60}\n"));
  EXPECT_TRUE(outcome.deleted);
  EXPECT_EQ(outcome.end, 112.0);
  EXPECT_EQ(outcome.counters.deleted, 1U);
  EXPECT_TRUE(std::none_of(outcome.pods.begin(), outcome.pods.end(), [](const Pod& pod) { return pod.is_live(); }));
  EXPECT_TRUE(outcome.status.has(Type::succeeded));
}

TEST(MsJobRules, K10_3_AJobThatIsActiveTooLongFails) {
  const JobOutcome outcome =
      outcome_of(sample_job({scheduler, workers(2)}, "  runPolicy: {activeDeadlineSeconds: 50}\n"));
  EXPECT_THAT(history(outcome),
              ElementsAre(Pair(0.0, Type::created), Pair(32.0, Type::running), Pair(50.0, Type::failed)));
  EXPECT_EQ(outcome.status.completion, 50.0);
  EXPECT_TRUE(std::none_of(outcome.pods.begin(), outcome.pods.end(), [](const Pod& pod) { return pod.is_live(); }));
  EXPECT_EQ(outcome.runs[0].steps, 80U);  // 8 s of 0.1 s
  const JobOutcome in_time =
      outcome_of(sample_job({scheduler, workers(2)}, "  runPolicy: {activeDeadlineSeconds: 53}\n"));
  EXPECT_TRUE(in_time.status.has(Type::succeeded));
}

TEST(MsJobRules, K10_3_AsManyRetriesAsBackoffLimitFailTheJob) {
  const auto outcome_with = [](const std::string& limit) {
    return outcome_of(sample_job({scheduler, workers(2, "ExitCode", "MS_ENABLE_RECOVERY=1")},
                                 "  runPolicy: {backoffLimit: " + limit + "}\n"),
                      sample_scenario({"worker-1 exit 137 at 43s", "worker-1 exit 137 at 56s"}));
  };
  // The second failure comes while the new pod runs: from 45 s on, as the image is there.
  const JobOutcome twice = outcome_with("2");
  EXPECT_TRUE(twice.status.has(Type::failed));
  EXPECT_EQ(twice.status.completion, 56.0);
  const JobEvent* const event = event_of(twice, "JobFailed");
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->message, "Job job has failed because it has reached the specified backoff limit");
  EXPECT_EQ(event->object, "msjob/job");
  EXPECT_FALSE(event->warning);
  EXPECT_EQ(twice.status.conditions.back().reason, "JobFailed");
  // A limit of 0 allows no retry, as a limit of 1 does not.
  EXPECT_EQ(outcome_with("1").status.completion, 43.0);
  EXPECT_EQ(outcome_with("0").status.completion, 43.0);
  EXPECT_EQ(event_of(outcome_with("3"), "JobFailed"), nullptr);
}

// --- Status

TEST(MsJobRules, K10_4_PendingPodsCountNowhere) {
  JobScenario scenario = sample_scenario();
  scenario.until = 31;
  const JobOutcome before = outcome_of(sample_job({scheduler, workers(2)}), scenario);
  EXPECT_EQ(before.status.of(JobRole::worker), ReplicaStatus());
  EXPECT_EQ(before.ending, JobEnding::out_of_time);
  scenario.until = 33;
  const JobOutcome after = outcome_of(sample_job({scheduler, workers(2)}), scenario);
  EXPECT_EQ(after.status.of(JobRole::worker), (ReplicaStatus{2, 0, 0}));
  scenario = sample_scenario({"worker-1 exit 3 at 40s"});
  const JobOutcome failed = outcome_of(sample_job({scheduler, workers(2)}), scenario);
  EXPECT_EQ(failed.status.of(JobRole::worker), (ReplicaStatus{1, 0, 1}));
}

TEST(MsJobRules, K10_5_Worker0AloneMakesTheJobSucceedUnlessAllMust) {
  // Without a scheduler each worker trains by itself. Worker 1 is killed before worker 0 is done, and begins anew.
  const JobScenario scenario = sample_scenario({"worker-1 exit 9 at 50s"});
  const JobOutcome first = outcome_of(sample_job({workers(2, "OnFailure")}), scenario);
  EXPECT_EQ(first.status.completion, 52.0);
  EXPECT_TRUE(first.status.has(Type::succeeded));
  EXPECT_FALSE(pod_of(first, "worker-1").is_live());
  const JobOutcome all = outcome_of(sample_job({workers(2, "OnFailure")}, "  successPolicy: AllWorkers\n"), scenario);
  // 50 s, 10 s of back-off, 10 s until the process is up, 10 s of training.
  EXPECT_EQ(all.status.completion, 80.0);
  EXPECT_TRUE(all.status.has(Type::succeeded));
  EXPECT_EQ(all.status.of(JobRole::worker), (ReplicaStatus{0, 2, 0}));
}

TEST(MsJobRules, K10_5_AJobWithoutWorkersNeverSucceeds) {
  const JobOutcome outcome = outcome_of(sample_job({scheduler}));
  EXPECT_EQ(pod_of(outcome, "scheduler-0").stage(), PodStage::succeeded);
  EXPECT_FALSE(outcome.status.is_finished());
  EXPECT_EQ(outcome.ending, JobEnding::stuck);
  EXPECT_THAT(outcome.waits, ElementsAre("the job has no workers, and only workers make a job succeed"));
}

TEST(MsJobRules, K10_5_NoWorkerThatIsExpectedIsSuccess) {
  EXPECT_EQ(outcome_of(sample_job({scheduler, workers(0)})).status.completion, 0.0);
}

TEST(MsJobRules, K10_6_RunningWhenAWorkerIsActive) {
  // The scheduler runs from 32 s on; a worker that finds no room for an hour does not make the job run.
  JobScenario scenario = sample_scenario();
  scenario.until = 3600;
  test::RoleText too_large = workers(1);
  too_large.needs = "huawei.com/Ascend910: 9";
  const JobOutcome outcome = outcome_of(sample_job({scheduler, too_large}), scenario);
  EXPECT_FALSE(outcome.status.has(Type::running));
  EXPECT_EQ(pod_of(outcome, "worker-0").why, "0/1 nodes are available: 1 Insufficient huawei.com/Ascend910");
  // The scheduler gives up after 1800 s, and the job fails with it.
  EXPECT_THAT(history(outcome), ElementsAre(Pair(0.0, Type::created), Pair(1842.0, Type::failed)));
}

TEST(MsJobRules, K10_7_AFailedPodFailsTheJob) {
  const JobOutcome outcome =
      outcome_of(sample_job({scheduler, {"PS", 1}, workers(2)}), sample_scenario({"ps-0 exit 1 at 45s"}));
  EXPECT_EQ(outcome.status.completion, 45.0);
  EXPECT_EQ(outcome.status.conditions.back().message, "MSJob default/job has failed because 1 PS replica(s) failed.");
  EXPECT_EQ(outcome.counters.failed, 1U);
}

TEST(MsJobRules, K10_7_DynamicWorkersMayFail) {
  const JobScenario scenario = sample_scenario({"worker-1 exit 1 at 45s"});
  const MsJob job = sample_job({workers(2)}, "  enableDynamicWorker: true\n");
  EXPECT_EQ(outcome_of(job, scenario).status.completion, 52.0);
  EXPECT_TRUE(outcome_of(job, scenario).status.has(Type::succeeded));
  EXPECT_TRUE(outcome_of(sample_job({workers(2)}), scenario).status.has(Type::failed));
  // Of other roles they may not.
  const JobOutcome outcome = outcome_of(sample_job({scheduler, workers(2)}, "  enableDynamicWorker: true\n"),
                                        sample_scenario({"scheduler-0 exit 1 at 45s"}));
  EXPECT_EQ(outcome.status.completion, 45.0);
}

TEST(MsJobRules, K10_8_ARetryableExitCodeIsTriedAgain) {
  const std::vector<test::RoleText> roles{{"Scheduler", 1, "Never", "", "MS_ENABLE_RECOVERY=1"},
                                          workers(2, "ExitCode", "MS_ENABLE_RECOVERY=1")};
  const JobOutcome outcome = outcome_of(sample_job(roles), sample_scenario({"worker-1 exit 137 at 45s"}));
  // Deleted and created again at 45 s; 2 s for the container, 10 s for the process, then all 100 steps anew.
  EXPECT_THAT(history(outcome),
              ElementsAre(Pair(0.0, Type::created), Pair(32.0, Type::running), Pair(45.0, Type::restarting),
                          Pair(45.0, Type::running), Pair(67.0, Type::succeeded)));
  EXPECT_EQ(outcome.counters.restarted, 1U);
  EXPECT_EQ(pod_of(outcome, "worker-1").created(), 45.0);
  EXPECT_TRUE(event_of(outcome, "MSJobRestarting")->warning);
  // 127 is no signal.
  const JobOutcome failed = outcome_of(sample_job(roles), sample_scenario({"worker-1 exit 127 at 45s"}));
  EXPECT_TRUE(failed.status.has(Type::failed));
  EXPECT_EQ(failed.status.completion, 45.0);
}

TEST(MsJobRules, K10_8_OnFailureAndAlwaysAreRestartedByTheKubelet) {
  const JobOutcome outcome = outcome_of(sample_job({workers(1, "OnFailure")}),
                                        sample_scenario({"worker-0 exit 1 at 45s", "worker-0 exit 1 at 60s"}));
  const Pod& pod = pod_of(outcome, "worker-0");
  EXPECT_EQ(outcome.pods.size(), 1U);
  EXPECT_EQ(pod.restarts(), 2U);
  // 45 + 10 s of back-off; 60 + 20 s of back-off, 10 s for the process, 10 s of training.
  EXPECT_EQ(outcome.status.completion, 100.0);
  EXPECT_TRUE(outcome.status.has(Type::succeeded));
  JobScenario scenario = sample_scenario();
  scenario.until = 2000;
  const JobOutcome always = outcome_of(sample_job({workers(1, "Always")}), scenario);
  EXPECT_FALSE(always.status.is_finished());  // its pod never ends
  EXPECT_GT(pod_of(always, "worker-0").restarts(), 3U);
  const JobOutcome limited = outcome_of(sample_job({workers(1, "Always")}, "  runPolicy: {backoffLimit: 3}\n"));
  EXPECT_TRUE(limited.status.has(Type::failed));
  EXPECT_EQ(pod_of(limited, "worker-0").restarts(), 3U);
}

TEST(MsJobRules, K10_9_TheExitCodeOfALostServerIsUnknown) {
  test::RoleText worker = workers(1);
  worker.pod = "nodeName: server1";
  // Without a scheduler, which would miss its heartbeats before.
  const JobOutcome outcome = outcome_of(sample_job({worker}), sample_scenario({"host server1 at 45s"}), 2);
  EXPECT_EQ(pod_of(outcome, "worker-0").exit_code, 0xbeef);
  EXPECT_EQ(outcome.status.completion, 385.0);  // 340 s later
  EXPECT_EQ(event_of(outcome, "ExitedWithCode"), nullptr);
  EXPECT_NE(event_of(outcome, "NodeLost"), nullptr);
}

TEST(MsJobRules, K10_10_EventsAndCounters) {
  const JobOutcome outcome = outcome_of(sample_job({scheduler, workers(2)}));
  for (const char* const reason : {"MSJobCreated", "MSJobRunning", "MSJobSucceeded", "ExitedWithCode",
                                   "SuccessfulCreatePod", "SuccessfulCreateService", "Scheduled", "Started"}) {
    EXPECT_NE(event_of(outcome, reason), nullptr) << reason;
  }
  EXPECT_EQ(event_of(outcome, "ExitedWithCode")->message, "Pod: default.job-worker-0 exited with code 0");
  EXPECT_EQ(outcome.counters.created, 1U);
  EXPECT_EQ(outcome.counters.succeeded, 1U);
  EXPECT_EQ(outcome.counters.failed, 0U);
  EXPECT_TRUE(std::is_sorted(outcome.events.begin(), outcome.events.end(),
                             [](const JobEvent& a, const JobEvent& b) { return a.first < b.first; }));
}

TEST(MsJobRules, FailuresOfWhatIsNotThereAreRefused) {
  const MsJob job = sample_job({scheduler, workers(2)});
  EXPECT_EQ(hcclsim::test::refusal(
                "option", [&] { static_cast<void>(outcome_of(job, sample_scenario({"worker-2 exit 1 at 1s"}))); }),
            "--fail: the job has no pod 'worker-2'; accepted: scheduler-0, worker-0 to worker-1");
  EXPECT_EQ(hcclsim::test::refusal(
                "option", [&] { static_cast<void>(outcome_of(job, sample_scenario({"host server1 at 1s"}))); }),
            "--fail: there is no server 'server1'; accepted: server0");
  // One that comes too early has no effect, and that is said.
  EXPECT_NE(event_of(outcome_of(job, sample_scenario({"job-worker-1 exit 1 at 1s"})), "FailureWithoutEffect"), nullptr);
}

}  // namespace
}  // namespace hcclsim::study
