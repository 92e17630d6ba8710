#include "study/jobs/job/msjob/read_msjob.hpp"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/memory_file.hpp"
#include "study/jobs/job/cluster/pod.hpp"
#include "tests/study/jobs/job/sample_jobs.hpp"
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

/// The lines of tests/data/msjobs/every_type.yaml.
std::vector<std::string> lines_of_every_type() {
  std::istringstream text(read_text_file(std::string(HCCLSIM_TEST_DATA) + "/msjobs/every_type.yaml", "msjob"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// What no value of a line's type may be, such as "7" in the place of a text. `key` and `value`: of the line.
std::vector<std::string> wrong_values(const std::string& key, const std::string& value) {
  const std::vector<std::string> of_quantities{"cpu", "memory", "divisor", "storage", "sizeLimit", "port"};
  if (std::ranges::count(of_quantities, key) > 0) return {"[7]", "{x: 7}", "true"};
  if (value.empty()) {  // of a list or map
    std::vector<std::string> wrong{"7", "'x'", "true"};
    if (key != "supplementalGroups") wrong.emplace_back("[7]");
    if (key != "overhead" && key != "requests") wrong.emplace_back("{x: 7}");
    return wrong;
  }
  if (value == "true" || value == "false") return {"7", "'true'", "[true]", "{x: true}"};
  if (value.front() == '\'') return {"7", "0x4", "-.inf", "true", "[x]", "{x: y}"};
  return {"'7'", "7.5", "true", "[7]", "{x: 7}"};
}

// Wherever a value of a wrong type stands, however deep, it is refused with its line.
TEST(ReadMsJob, TypesOfThePodTemplateAtAnyDepth) {
  const std::vector<std::string> lines = lines_of_every_type();
  const auto read = [](const std::vector<std::string>& changed) {
    static_cast<void>(parse_msjob(fmt::format("{}\n", fmt::join(changed, "\n")), "job.yaml"));
  };
  read(lines);
  std::size_t changes = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t begin = lines[i].find_first_not_of(" -");
    const std::size_t colon = lines[i].find(": ");
    const bool whole = lines[i].ends_with(':');  // a list or map, whose lines follow
    const std::string key =
        whole || colon != std::string::npos ? lines[i].substr(begin, lines[i].find(':') - begin) : "";
    const std::string value = whole ? "" : lines[i].substr(colon == std::string::npos ? begin : colon + 2);
    std::size_t end = i + 1;
    while (whole && end < lines.size() && lines[end].find_first_not_of(' ') > begin) ++end;
    for (const std::string& wrong : wrong_values(key, value)) {
      std::vector<std::string> changed(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(i));
      changed.push_back(fmt::format("{}{}{}{}", lines[i].substr(0, begin), key, key.empty() ? "" : ": ", wrong));
      changed.insert(changed.end(), lines.begin() + static_cast<std::ptrdiff_t>(end), lines.end());
      EXPECT_THAT(hcclsim::test::refusal("msjob", [&] { read(changed); }),
                  testing::StartsWith(fmt::format("job.yaml:{}: ", i + 1)))
          << changed[i];
      ++changes;
    }
  }
  EXPECT_GT(changes, 800U);
}

TEST(ReadMsJob, NumbersOfYaml) {
  const auto replicas = [](const std::string& number) {
    return parse_msjob(
        fmt::format("apiVersion: mindspore.gitee.com/v1\nkind: MSJob\nmetadata: {{name: job}}\nspec:\n"
                    "  msReplicaSpecs:\n    Worker:\n      replicas: {}\n      template:\n        spec:\n"
                    "          containers:\n            - name: mindspore\n              image: a\n"
                    "              resources: {{limits: {{cpu: {}}}}}\n",
                    number, number),
        "job.yaml");
  };
  for (const std::string number : {"16", "+16", "0x10", "0X10", "0o20", "0b10000", "1_6", "0x1_0"}) {
    const MsJob job = replicas(number);
    EXPECT_EQ(job.replicas[0].replicas, 16U) << number;
    EXPECT_EQ(job.replicas[0].pod.needed.at("cpu"), 16'000U) << number;
  }
  for (const std::string text : {"0x", "0xg", "0b2", "_1", "1.0", "0x1.8", "'16'", "-0x1", "99999999999999999999"}) {
    EXPECT_THAT(hcclsim::test::refusal("msjob", [&] { static_cast<void>(replicas(text)); }),
                HasSubstr("job.yaml:7: spec.msReplicaSpecs.Worker.replicas: "))
        << text;
  }
}

TEST(ReadMsJob, DeepNestingIsRefused) {
  const auto refusal = [](const std::string& text) {
    return hcclsim::test::refusal("msjob", [&] { static_cast<void>(parse_msjob(text, "job.yaml")); });
  };
  EXPECT_EQ(refusal("\n" + std::string(100'000, '[')), "job.yaml:2: lists and maps are more than 100 deep");
  std::string blocks = "a:\n";
  for (std::size_t i = 1; i < 120; ++i) blocks += std::string(i, ' ') + "a:\n";
  EXPECT_EQ(refusal(blocks), "job.yaml:101: lists and maps are more than 100 deep");
  // Aliases in each other.
  std::string aliases = "a0: &a0 [x]\n";
  for (int i = 1; i < 120; ++i) aliases += fmt::format("a{0}: &a{0} [*a{1}]\n", i, i - 1);
  EXPECT_EQ(refusal(aliases), "job.yaml:100: lists and maps are more than 100 deep");
}

TEST(ReadMsJob, TextIsUtf8) {
  const MemoryFile file("# caf\xc3\xa9\nkind: 'M\xe9SJob'\n");
  EXPECT_EQ(hcclsim::test::refusal("msjob", [&] { static_cast<void>(read_msjob(file.path())); }),
            file.path() + ":2: \\xE9 is no character in UTF-8; save the file in this encoding");
}

TEST(ReadMsJob, AFileWithoutADocument) {
  EXPECT_EQ(hcclsim::test::refusal("msjob", [] { static_cast<void>(parse_msjob("# nothing\n", "job.yaml")); }),
            "job.yaml: no YAML document in it");
}

}  // namespace
}  // namespace hcclsim::study
