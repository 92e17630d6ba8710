#include "study/job/msjob/read_msjob.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "study/job/cluster/pod.hpp"
#include "tests/study/job/sample_jobs.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using test::sample_job;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

/// Files of tests/data/msjobs/refused: the first line says what the others are refused for.
std::vector<std::string> refused_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(HCCLSIM_TEST_DATA) + "/msjobs/refused")) {
    files.push_back(entry.path().stem().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class RefusedMsJob : public testing::TestWithParam<std::string> {};

TEST_P(RefusedMsJob, WithLineAndPath) {
  const std::string path = std::string(HCCLSIM_TEST_DATA) + "/msjobs/refused/" + GetParam() + ".yaml";
  const std::string text = read_text_file(path, "msjob");
  ASSERT_EQ(text.rfind("# ", 0), 0U);
  const std::string expected = "job.yaml:" + text.substr(2, text.find('\n') - 2);
  EXPECT_EQ(hcclsim::test::refusal("msjob", [&] { static_cast<void>(parse_msjob(text, "job.yaml")); }), expected);
}

INSTANTIATE_TEST_SUITE_P(Files, RefusedMsJob, testing::ValuesIn(refused_files()),
                         [](const auto& file) { return file.param; });

TEST(ReadMsJob, DefaultsAreTheOperators) {
  const MsJob job = parse_msjob(
      "apiVersion: mindspore.gitee.com/v1\nkind: MSJob\nmetadata: {name: job}\nspec:\n  msReplicaSpecs:\n    WORKER:\n"
      "      template:\n        spec:\n          containers:\n            - {name: mindspore, image: "
      "'mindspore:2.0'}\n",
      "job.yaml");
  EXPECT_EQ(job.name_space, "default");
  EXPECT_EQ(job.policy.clean_pods, CleanPodPolicy::running);
  EXPECT_FALSE(job.policy.ttl_after_finished.has_value());
  EXPECT_FALSE(job.policy.active_deadline.has_value());
  EXPECT_FALSE(job.policy.backoff_limit.has_value());
  EXPECT_FALSE(job.policy.scheduling.has_value());
  EXPECT_EQ(job.success, SuccessPolicy::worker_0);
  EXPECT_FALSE(job.dynamic_worker);
  ASSERT_EQ(job.replicas.size(), 1U);
  EXPECT_EQ(job.replicas[0].role, JobRole::worker);  // names are normalised
  EXPECT_EQ(job.replicas[0].replicas, 1U);
  EXPECT_EQ(job.replicas[0].restart, RestartPolicy::never);
  ASSERT_EQ(job.replicas[0].pod.trainer().ports.size(), 1U);
  EXPECT_EQ(job.replicas[0].pod.trainer().ports[0].name, "msjob-port");
  EXPECT_EQ(job.replicas[0].pod.port(), 2222);
}

TEST(ReadMsJob, AllPolicies) {
  const MsJob job = sample_job({{"worker", 2}, {"scheduler"}},
                               "  successPolicy: AllWorkers\n  enableDynamicWorker: yes\n  runPolicy:\n"
                               "    cleanPodPolicy: All\n    ttlSecondsAfterFinished: 7\n    activeDeadlineSeconds: 8\n"
                               "    backoffLimit: 9\n    schedulingPolicy:\n      minAvailable: 2\n      queue: fast\n"
                               "      minResources: {cpu: 500m, huawei.com/Ascend910: 4}\n");
  EXPECT_EQ(job.success, SuccessPolicy::all_workers);
  EXPECT_TRUE(job.dynamic_worker);
  EXPECT_EQ(job.policy.clean_pods, CleanPodPolicy::all);
  EXPECT_EQ(job.policy.ttl_after_finished, 7.0);
  EXPECT_EQ(job.policy.active_deadline, 8.0);
  EXPECT_EQ(job.policy.backoff_limit, 9U);
  EXPECT_EQ(job.policy.scheduling->min_available, 2U);
  EXPECT_THAT(job.policy.scheduling->min_resources,
              UnorderedElementsAre(Pair("cpu", 500U), Pair("huawei.com/Ascend910", 4000U)));
  EXPECT_THAT(job.policy.scheduling->without_effect, ElementsAre("queue"));
  // Roles are in the order in which the operator takes care of them.
  ASSERT_EQ(job.replicas.size(), 2U);
  EXPECT_EQ(job.replicas[0].role, JobRole::scheduler);
  EXPECT_EQ(job.replicas_of(JobRole::worker), 2U);
  EXPECT_EQ(job.replicas_of(JobRole::ps), 0U);
  EXPECT_EQ(job.pods(), 3U);
}

TEST(ReadMsJob, WhatAPodNeedsIsTheSumOfItsContainersAndNotLessThanAnInitContainer) {
  const MsJob job = parse_msjob(
      "apiVersion: mindspore.gitee.com/v1\nkind: MSJob\nmetadata: {name: job}\nspec:\n  msReplicaSpecs:\n    Worker:\n"
      "      template:\n        spec:\n          affinity: {}\n          containers:\n"
      "            - {name: mindspore, image: a, resources: {limits: {cpu: 4, huawei.com/Ascend910: 2}, requests: "
      "{cpu: 1500m}}}\n"
      "            - {name: other, image: b, resources: {requests: {cpu: 1, memory: 1Ki}}}\n"
      "          initContainers:\n            - {name: init, image: c, resources: {limits: {cpu: 2, memory: 2Ki}}}\n",
      "job.yaml");
  EXPECT_THAT(job.replicas[0].pod.needed, UnorderedElementsAre(Pair("cpu", 2500U), Pair("memory", 2048U * 1000U),
                                                               Pair("huawei.com/Ascend910", 2000U)));
  EXPECT_EQ(npus_of(job.replicas[0].pod.needed), 2U);
  EXPECT_THAT(job.replicas[0].pod.without_effect, ElementsAre("initContainers", "affinity"));
  // An image without a tag is pulled always, as Kubernetes does.
  EXPECT_EQ(job.replicas[0].pod.trainer().pull, ImagePull::always);
}

TEST(ReadMsJob, EnvironmentOfTheOperator) {
  const MsJob job = sample_job({{"Scheduler"}, {"PS", 2}, {"Worker", 4, "Never", "", "MS_ROLE=MS_SCHED"}});
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  // The operator's variables count before those of the template.
  EXPECT_EQ(pod_environment(job, JobRole::worker, 3, "10.96.1.1"), (Pairs{{"MS_SCHED_HOST", "10.96.1.1"},
                                                                          {"MS_SCHED_PORT", "2222"},
                                                                          {"MS_SERVER_NUM", "2"},
                                                                          {"MS_WORKER_NUM", "4"},
                                                                          {"MS_ROLE", "MS_WORKER"},
                                                                          {"MS_NODE_ID", "job-worker-3"}}));
  EXPECT_EQ(pod_environment(job, JobRole::ps, 1, "10.96.1.1")[4].second, "MS_PSERVER");
  EXPECT_EQ(pod_environment(job, JobRole::scheduler, 0, "10.96.1.1")[4].second, "MS_SCHED");
  // Only when the scheduler's service exists.
  EXPECT_EQ(pod_environment(job, JobRole::worker, 3, ""), (Pairs{{"MS_ROLE", "MS_SCHED"}}));
  const MsJob without_ps = sample_job({{"Scheduler"}, {"Worker", 4}});
  EXPECT_EQ(pod_environment(without_ps, JobRole::worker, 0, "10.96.1.1")[2].second, "0");
}

TEST(ReadMsJob, LabelsOfAPod) {
  const MsJob job = sample_job({{"Worker", 2}});
  EXPECT_THAT(pod_labels(job, JobRole::worker, 1),
              UnorderedElementsAre(Pair("group-name", "mindspore.gitee.com"), Pair("job-name", "job"),
                                   Pair("replica-type", "worker"), Pair("replica-index", "1")));
}

TEST(ReadMsJob, AliasesStandForWhatTheyName) {
  const MsJob job = parse_msjob(
      "apiVersion: mindspore.gitee.com/v1\nkind: MSJob\nmetadata: {name: job}\nspec:\n  msReplicaSpecs:\n"
      "    Scheduler:\n      template: &pod\n        spec:\n          containers: [{name: mindspore, image: a}]\n"
      "    Worker:\n      template: *pod\n",
      "job.yaml");
  EXPECT_EQ(job.of(JobRole::worker)->pod.trainer().image, "a");
}

TEST(ReadMsJob, AliasesDoNotGrowWithoutBound) {
  std::string text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'h'; ++c) {
    const char before = static_cast<char>(c - 1);
    text += fmt::format("{0}: &{0} [*{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}]\n", c, before);
  }
  EXPECT_THAT(hcclsim::test::refusal("msjob", [&] { static_cast<void>(parse_msjob(text, "job.yaml")); }),
              HasSubstr("more than 100000 values"));
}

TEST(ReadMsJob, DeepNestingIsRefused) {
  const std::string text(100'000, '[');
  EXPECT_THAT(hcclsim::test::refusal("msjob", [&] { static_cast<void>(parse_msjob(text, "job.yaml")); }),
              HasSubstr("job.yaml:1: "));
}

TEST(ReadMsJob, AFileWithoutADocument) {
  EXPECT_EQ(hcclsim::test::refusal("msjob", [] { static_cast<void>(parse_msjob("# nothing\n", "job.yaml")); }),
            "job.yaml: no YAML document in it");
}

}  // namespace
}  // namespace hcclsim::study
