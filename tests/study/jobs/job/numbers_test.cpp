#include "study/jobs/job/numbers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "study/platform/shipped_platforms.hpp"
#include "tests/support/refusal.hpp"

/// The runs of a job's training with real gradients: what a restart goes on from.
namespace hcclsim::study {
namespace {

RunSpec trained_lenet(models::Optimizer optimizer) {
  RunSpec run;
  run.model = {.name = "lenet", .batch = 2};
  run.platform.file = "atlas800-9000";
  run.step.framework = Framework::mindspore;
  run.optimizer = optimizer;
  run.numerics.emplace();
  run.numerics->optimizer.rule = optimizer;
  run.numerics->workers = 1;
  return run;
}

/// Steps of two seconds from one on.
TrainingRun steps_from(std::uint64_t first, std::uint64_t steps, Seconds start, std::vector<Rank> npus = {0, 1}) {
  TrainingRun run;
  run.start = start;
  run.step_times.first = 2;
  run.first_step = first;
  run.steps = steps;
  run.hosts.npus = std::move(npus);
  return run;
}

JobNumerics trained(const RunSpec& run, const TrainingPlan& plan, const std::vector<TrainingRun>& runs) {
  sim::Cluster cluster(find_platform(run.platform.file), run.platform.edits);
  return train_job(run, plan, runs, cluster);
}

std::vector<double> losses_of(const std::vector<JobStep>& steps) {
  std::vector<double> losses;
  for (const JobStep& step : steps) losses.push_back(step.loss);
  return losses;
}

std::vector<double> from(const std::vector<double>& losses, std::size_t first, std::size_t end) {
  return {losses.begin() + static_cast<std::ptrdiff_t>(first), losses.begin() + static_cast<std::ptrdiff_t>(end)};
}

TEST(JobNumbers, GoOnFromCheckpointsWithTheLossesThatThereWere) {
  using enum models::Optimizer;
  for (const auto optimizer : {momentum, adam}) {
    const RunSpec spec = trained_lenet(optimizer);
    const auto whole = losses_of(trained(spec, {8, 0}, {steps_from(0, 8, 10)}).runs[0]);
    ASSERT_EQ(whole.size(), 8U);
    // 5 steps done, the checkpoint is of 3; one step more, nothing new; then the rest of the job.
    const JobNumerics job = trained(
        spec, {8, 3}, {steps_from(0, 5, 10), steps_from(3, 1, 100), steps_from(3, 4, 200), steps_from(6, 2, 300)});
    EXPECT_FALSE(job.failure.has_value());
    EXPECT_EQ(losses_of(job.runs[0]), from(whole, 0, 5));
    EXPECT_EQ(losses_of(job.runs[1]), from(whole, 3, 4));
    EXPECT_EQ(losses_of(job.runs[2]), from(whole, 3, 7));
    EXPECT_EQ(losses_of(job.runs[3]), from(whole, 6, 8));
    EXPECT_EQ(job.runs[2][1].step, 4U);
    EXPECT_EQ(job.runs[2][1].end, 204) << "two steps of 2 s after its begin";
  }
}

TEST(JobNumbers, BeginAnewWithoutACheckpoint) {
  const JobNumerics job =
      trained(trained_lenet(models::Optimizer::sgd), {4, 0}, {steps_from(0, 2, 0), steps_from(0, 4, 50)});
  EXPECT_EQ(losses_of(job.runs[0]), from(losses_of(job.runs[1]), 0, 2));
  EXPECT_LT(job.runs[1].back().loss, job.runs[1].front().loss);
}

TEST(JobNumbers, WorkersByThemselvesTrainApart) {
  std::vector<TrainingRun> runs{steps_from(0, 3, 0, {0}), steps_from(0, 2, 0, {1}), steps_from(2, 1, 60, {1})};
  runs[0].worker = "job-worker-0";
  runs[1].worker = runs[2].worker = "job-worker-1";
  const JobNumerics job = trained(trained_lenet(models::Optimizer::momentum), {3, 2}, runs);
  std::vector<double> second = losses_of(job.runs[1]);
  second.push_back(job.runs[2].at(0).loss);
  EXPECT_EQ(losses_of(job.runs[0]), second) << "of the same data and seed";
}

/// Servers lose what their optimizers keep, which plain SGD does not have.
TEST(JobNumbers, ServersGoOnFromTheWeightsOfACheckpoint) {
  const auto on_servers = [](std::uint64_t first, std::uint64_t steps) {
    TrainingRun run = steps_from(first, steps, 0);
    run.hosts.parameter_servers = {0, 0};
    return run;
  };
  const RunSpec plain = trained_lenet(models::Optimizer::sgd);
  const auto whole = losses_of(trained(plain, {7, 0}, {steps_from(0, 7, 0)}).runs[0]);
  for (const std::uint64_t done : {3U, 4U, 5U}) {
    const JobNumerics job = trained(plain, {7, 3}, {on_servers(0, done), on_servers(3, 4)});
    EXPECT_EQ(losses_of(job.runs[0]), from(whole, 0, done));
    EXPECT_EQ(losses_of(job.runs[1]), from(whole, 3, 7)) << done;
  }
  const RunSpec momentum = trained_lenet(models::Optimizer::momentum);
  const JobNumerics job = trained(momentum, {7, 3}, {on_servers(0, 5), on_servers(3, 4)});
  EXPECT_EQ(job.runs[1][0].loss, job.runs[0][3].loss) << "the same weights";
  EXPECT_NE(job.runs[1][1].loss, job.runs[0][4].loss) << "no velocity";
}

TEST(JobNumbers, ServersGoOnWithTheIdsOfTheStep) {
  RunSpec spec = trained_lenet(models::Optimizer::sgd);
  spec.model = {.name = "wide-deep", .batch = 2, .vocabulary = 300};
  const auto on_servers = [](std::uint64_t first, std::uint64_t steps) {
    TrainingRun run = steps_from(first, steps, 0);
    run.hosts.parameter_servers = {0, 0};
    return run;
  };
  const auto whole = losses_of(trained(spec, {6, 0}, {on_servers(0, 6)}).runs[0]);
  const JobNumerics job = trained(spec, {6, 2}, {on_servers(0, 5), on_servers(4, 2)});
  EXPECT_EQ(losses_of(job.runs[0]), from(whole, 0, 5));
  EXPECT_EQ(losses_of(job.runs[1]), from(whole, 4, 6));
}

TEST(JobNumbers, TellOfTrainingThatDiverges) {
  RunSpec spec = trained_lenet(models::Optimizer::sgd);
  spec.numerics->learning_rate = device::LearningRate(1e6);
  const JobNumerics job = trained(spec, {30, 0}, {steps_from(0, 30, 0), steps_from(0, 30, 100)});
  ASSERT_TRUE(job.failure.has_value());
  EXPECT_EQ(job.failure->kind(), "diverged");
  EXPECT_EQ(job.runs[0].size(), 30U);
  EXPECT_TRUE(job.runs[1].empty());
}

}  // namespace
}  // namespace hcclsim::study
