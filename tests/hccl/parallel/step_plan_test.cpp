#include "hccl/parallel/step_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "hccl/parallel/pipeline/stage_graphs.hpp"
#include "models/lowering/lower.hpp"
#include "tests/support/training/parallel_training.hpp"
#include "tests/support/training/pipelines.hpp"

/// What roles reduce, gather and send, and how often.
namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Plan plan_of(const test::ParallelSetup& setup) {
  return test::plan_of(setup, test::stages_of(setup, models::make_model(setup.model)));
}

/// Collective tasks of a role: "reducescatter1 of 128 in micro-batch 0".
std::vector<std::string> collectives_of(const Plan& plan, std::uint32_t role, StepPhase phase) {
  std::vector<std::string> found;
  for (const PlanTask& task : plan.roles[role].tasks) {
    const auto* const work = std::get_if<CollectiveTask>(&task.work);
    if (work == nullptr || task.purpose.phase != phase) continue;
    const PlannedCollective& collective = plan.collectives[work->collective];
    found.push_back(collective.name + " of " + std::to_string(collective.operation.elements) + " in micro-batch " +
                    std::to_string(task.purpose.micro_batch));
  }
  return found;
}

/// A GPT in two stages with a tied table of 32 x 16 = 512 numbers.
test::ParallelSetup tied(const std::string& optimizer_parallel) {
  test::ParallelSetup setup;
  setup.shape = {.stages = 2, .micro_batches = 3};
  setup.replicas = 2;
  setup.optimizer_parallel = optimizer_parallel;
  return setup;
}

// P3.17, P3.23: what the last stage adds to the gradient of a tied table comes once per step, with the last
// micro-batch. Its owner adds up whole gradients and reduces them once, the others with every micro-batch.
TEST(ParallelPlan, ATiedTableIsReducedOnce) {
  for (const char* const kind : {"zero2", "zero3"}) {
    test::ParallelSetup setup = tied(kind);
    setup.fusion.reduce_scatter.mode = FusionMode::all;
    const Plan plan = plan_of(setup);
    // Of the first stage: 1024 positions of 16, two layers of 12 h^2 + 13 h; the ranks keep a half of each parameter.
    const std::uint64_t layer = 12 * 16 * 16 + 13 * 16;
    const std::string others = "reducescatter1 of " + std::to_string((1024 * 16 + 2 * layer) / 2) + " in micro-batch ";
    EXPECT_THAT(collectives_of(plan, 0, StepPhase::reduction),
                ElementsAre(others + "0", others + "1", others + "2", "reducescatter2 of 256 in micro-batch 2"))
        << kind;
    const models::Program& program = *plan.roles[0].program;
    const auto table = std::ranges::find(program.parameters, "wte.weight", &models::ParameterShare::name);
    ASSERT_NE(table, program.parameters.end());
    EXPECT_FALSE(table->sums_parts);
    // Of the table the whole gradient is kept, of the others a half; fp32.
    EXPECT_EQ(program.gradient_bytes, (512 + (1024 * 16 + 2 * layer) / 2) * 4) << kind;
    const auto sum = std::ranges::find(program.kernels, "wte.weight:accumulate", &models::Kernel::name);
    ASSERT_NE(sum, program.kernels.end());
    EXPECT_EQ(sum->written, 512U * 4);
  }
}

TEST(ParallelPlan, WithoutPartsOfSumsEverythingIsReducedOnce) {
  for (const char* const kind : {"on:threshold=0", "zero1"}) {
    test::ParallelSetup setup = tied(kind);
    setup.fusion.reduce_scatter.mode = FusionMode::all;
    EXPECT_THAT(collectives_of(plan_of(setup), 0, StepPhase::reduction), testing::SizeIs(1)) << kind;
  }
}

/// Names of the weights that each gather of a role brings, and in which passes it runs.
std::vector<std::string> gathers_of(const Plan& plan, std::uint32_t role) {
  std::vector<std::string> found;
  for (const PlanTask& task : plan.roles[role].tasks) {
    if (!std::holds_alternative<CollectiveTask>(task.work) || task.purpose.phase != StepPhase::gather) continue;
    found.push_back(
        plan.name(plan.roles[role], {static_cast<std::uint32_t>(&task - plan.roles[role].tasks.data()), 0}));
  }
  return found;
}

// D9.17: a recomputed layer's weights are gathered for the forward pass and again for the backward pass; others once.
TEST(ParallelPlan, RecomputedLayersGatherAgain) {
  test::ParallelSetup setup;
  setup.model = {
      .name = "llama2-7b", .batch = 1, .sequence = 4, .layers = 2, .hidden = 16, .heads = 2, .vocabulary = 32};
  setup.replicas = 2;
  setup.optimizer_parallel = "on:threshold=0";
  setup.fusion.allgather.mode = FusionMode::all;
  EXPECT_THAT(gathers_of(plan_of(setup), 0), testing::SizeIs(1));
  setup.recompute = "layers:1";
  setup.gathers_again = true;
  const Plan plan = plan_of(setup);
  const Role& role = plan.roles[0];
  std::vector<std::string> again;
  for (const WeightGather& gather : role.gathers) {
    for (const std::uint32_t parameter : gather.parameters) {
      if (gather.each_use) again.push_back(role.program->parameters[parameter].name);
    }
  }
  EXPECT_THAT(again, testing::Each(testing::StartsWith("model.layers.0.")));
  EXPECT_THAT(again, testing::SizeIs(7));  // 4 of attention, 2 norms, down_proj; the 43 rows of two others are odd
  std::size_t forward = 0;
  std::size_t backward = 0;
  bool begun = false;
  for (const PlanTask& task : role.tasks) {
    begun = begun || task.purpose.phase == StepPhase::backward;
    if (!std::holds_alternative<CollectiveTask>(task.work) || task.purpose.phase != StepPhase::gather) continue;
    ++(begun ? backward : forward);
  }
  EXPECT_GT(backward, 0U);
  EXPECT_EQ(forward, role.gathers.size());
}

TEST(RecomputedLayers, OwnTheParametersThatNobodyElseUses) {
  const models::Graph graph = models::make_model(
      {.name = "gpt2-small", .batch = 1, .sequence = 4, .layers = 3, .hidden = 16, .heads = 2, .vocabulary = 32});
  const auto owned = [&](const char* recompute) {
    const std::vector<bool> only = parameters_of_recomputed_layers(graph, parse_recompute(recompute), 0, 1);
    return std::ranges::count(only, true);
  };
  EXPECT_EQ(owned("full"), 3 * 12);  // of a layer: 4 weights, 4 biases, two norms of 2
  EXPECT_EQ(owned("layers:2"), 2 * 12);
  EXPECT_EQ(owned("layers:0"), 0);
  EXPECT_EQ(owned("none"), 0);
  EXPECT_EQ(owned("operators:gelu"), 0);
}

// O4.14, O4.15: whole parameters are dealt round-robin; behind the updates every rank broadcasts its own in turn.
TEST(ParallelPlan, DealtParametersAreUpdatedByOneRankAndBroadcast) {
  test::ParallelSetup setup;
  setup.model = {.name = "mlp:8,6,4", .batch = 2};  // 48, 6, 24 and 4 numbers
  setup.replicas = 3;
  setup.optimizer_parallel = "dealt";
  const Plan plan = plan_of(setup);
  ASSERT_EQ(plan.roles.size(), 3U);
  EXPECT_THAT(plan.role_of, ElementsAre(0, 1, 2));
  const auto updated = [&](std::uint32_t role) {
    std::vector<std::string> names;
    for (const models::Kernel& kernel : plan.roles[role].program->kernels) {
      if (kernel.phase == models::Phase::update && kernel.gradient != models::no_gradient) {
        names.push_back(plan.roles[role].program->gradients[kernel.gradient].name);
      }
    }
    return names;
  };
  EXPECT_THAT(updated(0), UnorderedElementsAre("fc1.weight", "fc2.bias"));
  EXPECT_THAT(updated(1), UnorderedElementsAre("fc1.bias"));
  EXPECT_THAT(updated(2), UnorderedElementsAre("fc2.weight"));
  for (std::uint32_t role = 0; role < 3; ++role) {
    EXPECT_THAT(collectives_of(plan, role, StepPhase::gather),
                ElementsAre("broadcast1 of 52 in micro-batch 0", "broadcast2 of 6 in micro-batch 0",
                            "broadcast3 of 24 in micro-batch 0"));
  }
  for (const PlannedCollective& collective : plan.collectives) {
    if (collective.operation.collective != Collective::broadcast) continue;
    EXPECT_EQ(collective.name, "broadcast" + std::to_string(collective.operation.root + 1));
  }
}

// P3.29: one allreduce per result over the ranks of one place in every stage.
TEST(ParallelPlan, ResultsReachAllStages) {
  const models::Graph graph = models::make_model({.name = "mlp:4,4,4", .batch = 2});
  const auto parts = even_parts(graph.layers, 2, 1);
  std::vector<StageProgram> stages;
  for (const models::Graph& stage : stage_graphs(graph, parts, 2, 2)) {
    stages.push_back(fuse_communication(lower(stage, {.forward_only = true}), {}));
  }
  stages.back().results = {16, 2};
  const Plan plan = make_plan(stages, test::overlapped({.stages = 2, .micro_batches = 2, .forward_only = true}, 4),
                              test::empty_schedule);
  for (std::uint32_t role = 0; role < 2; ++role) {
    EXPECT_THAT(collectives_of(plan, role, StepPhase::result),
                ElementsAre("result1 of 16 in micro-batch 0", "result2 of 2 in micro-batch 0"));
    EXPECT_THAT(collectives_of(plan, role, StepPhase::reduction), IsEmpty());
  }
  const auto& groups = plan.families[plan.collectives.front().family].groups;
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_THAT(groups[0].ranks, ElementsAre(0, 2));
  EXPECT_THAT(groups[1].ranks, ElementsAre(1, 3));
}

}  // namespace
}  // namespace hcclsim::hccl
