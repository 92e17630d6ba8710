#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hccl/parallel/compressed_plan.hpp"
#include "hccl/parallel/plan/plan_file.hpp"
#include "hccl/parallel/plan/plan_walk.hpp"
#include "hccl/training/step_view.hpp"
#include "hccl/training/training.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/training/programs.hpp"
#include "tests/support/training/steps.hpp"
#include "tests/support/units.hpp"

/// Timelines of compressed steps by hand: batched PowerSGD of rank 1 on buckets of 4090 elements of fp32 (64×64, 6 of
/// them padding) on two Ascend910A, whose kernels begin after t0 = 4.622 us, at 1 GHz. In ns without t0:
///   padding, the orthogonalisation of 64 elements and a division: one cycle each, 1
///   P = M·Q and Q = Mᵀ·P: a block of 16×16 on four cores reads (16 + 16)·64·4 bytes at 110 a cycle and writes
///   16·16·4 at 86: 74.4727 + 11.9070 = 86.3797
///   M = P·Qᵀ: sixteen blocks, depth 16: (16 + 16)·16·4/110 + 11.9070 = 30.5252
/// An allreduce of 256 bytes has two rounds of 3.64 us + 128 bytes at 10 GB/s (training_test.cpp): 7.3056 us.
namespace hcclsim::hccl {
namespace {

using test::timed_kernel;
using test::us;

constexpr double t0 = 4.622;
constexpr double before_p = 3 * t0 + 0.002 + 0.0863797;
constexpr double before_q = 2 * t0 + 0.001 + 0.0863797;
constexpr double behind_q = 2 * t0 + 0.001 + 0.0305252;
constexpr double allreduce = 7.3056;
constexpr double hook = before_p + allreduce + before_q + allreduce + behind_q;

constexpr const char* at_once = "batched-powersgd:start=0,error-feedback=off,warm-start=off";

/// Forward 10 us; a backward kernel and an update of 5 us for each gradient.
models::Program program_of(const std::vector<double>& backward_us, std::uint64_t elements = 4090) {
  using models::Phase;
  models::Program program;
  program.title = "by hand";
  program.batch = 1;
  program.kernels = {timed_kernel("forward", Phase::forward, 10 * us)};
  for (const double time : backward_us) program.kernels.push_back(timed_kernel("backward", Phase::backward, time * us));
  program.micro_batch_kernels = static_cast<std::uint32_t>(program.kernels.size());
  const auto count = static_cast<std::uint32_t>(backward_us.size());
  for (std::uint32_t g = 0; g < count; ++g) {
    program.gradients.push_back({.name = "g", .parameter = count - 1 - g, .elements = elements, .kernel = g + 1});
    program.kernels.push_back(timed_kernel("update", Phase::update, 5 * us, g));
  }
  return program;
}

struct Found {
  std::vector<Seconds> steps{};  ///< of each iteration
  std::vector<sim::Interval> hooks{};
  std::vector<Bytes> bytes{};
  Seconds end = 0;
};

Found simulate(const models::Program& made, TrainingStep training) {
  return test::in_child([&] {
    sim::Cluster cluster(test::write_platform({}));
    std::vector<std::string> notes;
    const device::Soc soc = device::find_soc("Ascend910A", notes);
    const device::TaskCosts costs = device::read_task_costs(cluster, notes);
    std::vector<Segment> each;
    for (std::uint32_t g = 0; g < made.gradients.size(); ++g) each.push_back({g, g});
    training.stages = {test::replicas(std::make_shared<models::Program>(made), each)};
    training.step.npus = 2;
    training.step.allreduce = Algorithm::ring;
    const TimedStep step = simulate_training(cluster, soc, costs, training);
    const StepView view = StepView::of(step.plan, step.trace, 0);
    Found found{.end = view.iteration_end};
    Seconds before = 0;
    for (const std::vector<Seconds>& ends : step.iteration_ends) {
      found.steps.push_back(ends[0] - std::exchange(before, ends[0]));
    }
    for (const SegmentFigures& segment : view.segments) {
      found.hooks.push_back({segment.start, segment.end});
      found.bytes.push_back(segment.bytes);
    }
    return found;
  });
}

TrainingStep options_of(const std::string& settings, std::uint32_t iterations = 3) {
  return {.stages = {},
          .step = {.hcom_parallel = true, .compression = CompressionPlan{parse_compression(settings)}},
          .simulation = {.iterations = iterations}};
}

TEST(CompressedTraining, ABucketByHand) {
  const Found found = simulate(program_of({20}), options_of(at_once));
  ASSERT_EQ(found.hooks.size(), 1U);
  EXPECT_NEAR(found.hooks[0].start, 30 * us, 1e-12);
  EXPECT_NEAR(found.hooks[0].end, (30 + hook) * us, 1e-12);
  EXPECT_NEAR(found.end, (30 + hook + 5) * us, 1e-12);
  EXPECT_EQ(found.bytes[0], 2U * 64 * 4);
}

/// The second bucket is ready 5 us behind the first. Its kernels run beside the first one's, in a stream of their own;
/// its first allreduce comes behind the first one's second.
TEST(CompressedTraining, TwoBucketsOverlap) {
  const Found found = simulate(program_of({20, 5}), options_of(at_once));
  ASSERT_EQ(found.hooks.size(), 2U);
  EXPECT_NEAR(found.hooks[0].start, 30 * us, 1e-12);
  EXPECT_NEAR(found.hooks[0].end, (30 + hook) * us, 1e-12);
  EXPECT_NEAR(found.hooks[1].start, 35 * us, 1e-12);
  const double first_q_end = 30 + before_p + allreduce + before_q + allreduce;
  EXPECT_NEAR(found.hooks[1].end, (first_q_end + allreduce + before_q + allreduce + behind_q) * us, 1e-12);
}

/// Steps before `start` are those of a run without compression, to the last bit; the others those of a run that
/// compresses from the first step on.
TEST(CompressedTraining, PlainStepsComeFirst) {
  const TrainingStep plain{.stages = {}, .step = {.hcom_parallel = true}, .simulation = {.iterations = 5}};
  const Found without = simulate(program_of({20, 5}), plain);
  const Found found =
      simulate(program_of({20, 5}), options_of("batched-powersgd:start=2,error-feedback=off,warm-start=off", 5));
  const Found always = simulate(program_of({20, 5}), options_of(at_once, 5));
  EXPECT_EQ(found.steps[0], without.steps[0]);
  EXPECT_EQ(found.steps[1], without.steps[1]);
  for (std::size_t step = 2; step < 5; ++step) EXPECT_NEAR(found.steps[step], always.steps[step], 1e-15);
  EXPECT_NE(found.steps[2], found.steps[1]);
}

/// A run that goes on has the plain steps behind it.
TEST(CompressedTraining, StepsOfATrainingThatGoesOn) {
  TrainingStep options = options_of("batched-powersgd:start=2,error-feedback=off,warm-start=off");
  options.step.compression->steps_done = 7;
  EXPECT_NEAR(simulate(program_of({20}), options).steps[0], (30 + hook + 5) * us, 1e-12);
}

/// Without overlap the hooks follow the backward pass, side by side but for their collectives; updates wait for all.
TEST(CompressedTraining, WithoutOverlap) {
  TrainingStep options = options_of(at_once);
  options.step.hcom_parallel = false;
  const Found found = simulate(program_of({20, 5}), options);
  EXPECT_NEAR(found.hooks[0].start, 35 * us, 1e-12);
  EXPECT_NEAR(found.hooks[1].start, 35 * us, 1e-12);
  const double first_q_end = 35 + before_p + allreduce + before_q + allreduce;
  const double end = first_q_end + allreduce + before_q + allreduce + behind_q;
  EXPECT_NEAR(found.hooks[1].end, end * us, 1e-12);
  EXPECT_NEAR(found.end, (end + 10) * us, 1e-12);
}

/// Every hook in every way of overlapping comes to its end, plain and compressed, and its Plan is read as it was
/// written.
class CompressedPlans : public testing::TestWithParam<std::tuple<std::string, bool, bool, std::uint32_t>> {};

TEST_P(CompressedPlans, ComeToTheirEnd) {
  const auto& [settings, overlap, update_stream, micro_batches] = GetParam();
  const bool ended =
      test::in_child([&, overlap = overlap, update_stream = update_stream, micro = micro_batches, settings = settings] {
        sim::Cluster cluster(test::write_platform({.servers = 2}));
        std::vector<std::string> notes;
        const device::Soc soc = device::find_soc("Ascend910A", notes);
        models::Program program = program_of({20, 5, 7}, 600);
        for (models::Gradient& gradient : program.gradients) gradient.rows = 20;
        const Plan plan =
            plan_training(cluster, soc,
                          {.stages = {test::replicas(std::make_shared<models::Program>(program), {{0, 0}, {1, 2}})},
                           .step = {.framework = update_stream ? Framework::tensorflow : Framework::mindspore,
                                    .npus = 4,
                                    .shape = {.micro_batches = micro},
                                    .hcom_parallel = overlap,
                                    .compression = CompressionPlan{parse_compression(settings)}}});
        const PlanWalk end = walk(plan);
        const Plan again = plan_of_json("a file", plan_json(plan));
        return end.end > 0 && std::abs(walk(again).end - end.end) <= 1e-12 * end.end &&
               walk(uncompressed(plan)).end > 0 &&
               uncompressed(plan).roles.front().tasks.size() < plan.roles.front().tasks.size();
      });
  EXPECT_TRUE(ended);
}

INSTANTIATE_TEST_SUITE_P(Hooks, CompressedPlans,
                         testing::Combine(testing::Values("batched-powersgd", "powersgd:rank=2,start=2", "fp16", "bf16",
                                                          "topk:ratio=0.1"),
                                          testing::Bool(), testing::Bool(), testing::Values(1, 2)));

TEST(CompressedTraining, RefusesWhatItCannotDo) {
  sim::Cluster cluster(test::write_platform({}));
  std::vector<std::string> notes;
  const device::Soc soc = device::find_soc("Ascend910A", notes);
  const auto plan = [&](models::Program program, const std::string& settings) {
    std::ignore =
        plan_training(cluster, soc,
                      {.stages = {test::replicas(std::make_shared<models::Program>(std::move(program)), {{0, 0}})},
                       .step = {.npus = 2, .compression = CompressionPlan{parse_compression(settings)}}});
  };
  EXPECT_NE(test::refusal("unsupported", [&] { plan(program_of({20}), "powersgd"); }).find("shape"), std::string::npos);
  models::Program checked = program_of({20});
  checked.overflow_flag = true;
  EXPECT_NE(test::refusal("unsupported", [&] { plan(checked, "topk"); }).find("loss scale"), std::string::npos);
}

}  // namespace
}  // namespace hcclsim::hccl
