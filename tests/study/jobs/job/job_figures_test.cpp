#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "study/jobs/job/job.hpp"
#include "tests/study/jobs/job/sample_jobs.hpp"

/// What jobs are compared by, by hand: steps take 0.1 s and begin at 42 s.
namespace hcclsim::study {
namespace {

using test::sample_job;
using test::sample_scenario;
using test::sample_servers;
using test::sample_step;

JobResult result_of(const MsJob& job, const JobScenario& scenario, const StepTime& step = sample_step) {
  JobResult result;
  result.job = job;
  result.servers = sample_servers(2, 4);
  result.scenario = scenario;
  result.outcome = simulate_job(job, result.servers, scenario, step);
  return result;
}

std::vector<test::RoleText> recovering(const std::string& restart) {
  const std::string on = "MS_ENABLE_RECOVERY=1";
  return {{"Scheduler", 1, restart, "", on}, {"Worker", 2, restart, "huawei.com/Ascend910: 3", on}};
}

TEST(JobFigures, WithoutFailures) {
  const JobResult result = result_of(sample_job(recovering("Never")), sample_scenario());
  const JobFigures figures = result.figures();
  EXPECT_EQ(result.npus(), 6U);
  EXPECT_DOUBLE_EQ(figures.time.value(), 52);
  EXPECT_DOUBLE_EQ(figures.goodput.value(), 10. / 52);
  EXPECT_DOUBLE_EQ(figures.step.value(), 0.1);
  EXPECT_EQ(figures.restarts, 0U);
}

// 60 steps until 48 s, of which 50 are in a checkpoint; a new pod is up 2 + 10 s later and does the other 50 by 65 s.
TEST(JobFigures, StepsThatAreDoneTwiceCountOnce) {
  JobScenario scenario = sample_scenario({"worker-1 exit 137 at 48s"});
  scenario.plan.checkpoint_every = 25;
  const JobFigures figures = result_of(sample_job(recovering("ExitCode")), scenario).figures();
  EXPECT_DOUBLE_EQ(figures.time.value(), 65);
  EXPECT_DOUBLE_EQ(figures.goodput.value(), 10. / 65);
  EXPECT_DOUBLE_EQ(figures.step.value(), 0.1);
  EXPECT_EQ(figures.restarts, 1U);
}

// The kubelet waits 10 s, and the container needs no image and no sandbox.
TEST(JobFigures, RestartsByTheKubeletCount) {
  const JobFigures figures =
      result_of(sample_job(recovering("OnFailure")), sample_scenario({"worker-1 exit 1 at 47s"})).figures();
  EXPECT_DOUBLE_EQ(figures.time.value(), 47 + 10 + 10 + 10);
  EXPECT_DOUBLE_EQ(figures.goodput.value(), 10. / 77);
  EXPECT_EQ(figures.restarts, 1U);
}

// 40 steps of 0.1 s, then 60 of 0.05 s: 7 s in all.
TEST(JobFigures, StepsOfTwoLengths) {
  const JobFigures figures = result_of(sample_job(recovering("Never")), sample_scenario(), [](const TrainingHosts&) {
                               return StepTimes{.first = 0.1, .change_at = 40, .then = 0.05};
                             }).figures();
  EXPECT_DOUBLE_EQ(figures.time.value(), 49);
  EXPECT_DOUBLE_EQ(figures.goodput.value(), 7. / 49);
  EXPECT_DOUBLE_EQ(figures.step.value(), 0.07);
}

// Without a scheduler each worker trains by itself; the job has succeeded when both have, in the same 10 s.
TEST(JobFigures, OfWorkersThatTrainByThemselves) {
  const MsJob job = sample_job({{"Worker", 2, "Never", "huawei.com/Ascend910: 1"}}, "  successPolicy: AllWorkers\n");
  const JobFigures figures = result_of(job, sample_scenario()).figures();
  EXPECT_DOUBLE_EQ(figures.time.value(), 52);
  EXPECT_DOUBLE_EQ(figures.goodput.value(), 10. / 52);
}

TEST(JobFigures, AJobThatFailsHasNoTime) {
  const JobFigures figures =
      result_of(sample_job(recovering("Never")), sample_scenario({"worker-1 exit 1 at 47s"})).figures();
  EXPECT_FALSE(figures.time.has_value());
  EXPECT_FALSE(figures.goodput.has_value());
  EXPECT_DOUBLE_EQ(figures.step.value(), 0.1);
  const JobFigures unbegun = result_of(sample_job({{"Scheduler"}}), sample_scenario()).figures();
  EXPECT_FALSE(unbegun.step.has_value());
}

}  // namespace
}  // namespace hcclsim::study
