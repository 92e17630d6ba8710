#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/staging.hpp"
#include "hccl/parallel/optimizer_parallel.hpp"
#include "hccl/parallel/plan/plan_walk.hpp"
#include "hccl/parallel/recompute.hpp"
#include "hccl/parallel/step_plan.hpp"
#include "hccl/training/executor.hpp"
#include "hccl/training/step_view.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/training/pipelines.hpp"
#include "tests/support/training/sharded_layers.hpp"
#include "tests/support/units.hpp"

/// Plans of stages whose operators are cut over devices: who meets whom, what travels together, and when.
namespace hcclsim::hccl {
namespace {

using test::us;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

struct ShardedSetup {
  Rank devices = 4;
  PipelineShape shape{};
  std::string optimizer_parallel = "off";
  FusionRules fusion{};
  std::string recompute = "none";
  bool repeat_collectives = true;
  bool mean = false;
};

/// With 10 us for each kernel of the micro-batch, and updates in no time.
std::vector<StageProgram> sharded_programs(const ShardedSetup& setup) {
  const ShardedGraph network = test::paired_layers(setup.devices);
  const std::vector<std::uint32_t> parts(setup.shape.stages, network.graph.layers / setup.shape.stages);
  const OptimizerParallel sharing = parse_optimizer_parallel(setup.optimizer_parallel);
  std::vector<StageProgram> programs;
  std::vector<std::string> notes;
  std::vector<bool> matched;
  for (ShardedGraph& stage : sharded_stages(network, parts, setup.shape.stages)) {
    const auto number = static_cast<std::uint32_t>(programs.size());
    mark_recomputed(stage.graph, parse_recompute(setup.recompute), number, setup.shape.stages, matched,
                    setup.repeat_collectives);
    std::vector<ParameterCopies> copies;
    std::vector<bool> alone;
    for (std::uint32_t parameter = 0; parameter < stage.mirrors.size(); ++parameter) {
      copies.push_back({stage.copies(parameter), stage.parameters[parameter].shape.elements()});
      alone.push_back(stage.mirrors[parameter] == ShardedGraph::no_family);
    }
    models::ShardingOptions sharding =
        share_parameters(stage.graph, sharing, stage.devices, sizeof(float), notes, copies);
    sharding.alone = alone;
    models::Program program = lower(stage.graph, {.precision = models::precision_of(models::Amp::o0),
                                                  .accumulate = setup.shape.micro_batches > 1,
                                                  .sharding = sharding});
    add_updates(program, {.precision = models::precision_of(models::Amp::o0), .mean = setup.mean});
    for (models::Kernel& kernel : program.micro_batch()) {
      if (kernel.kind != models::KernelClass::communication) kernel.duration = 10 * us;
    }
    programs.push_back(fuse_communication(std::move(program), setup.fusion, false, stage.mirrors));
    programs.back().families = stage.families;
  }
  return programs;
}

std::shared_ptr<const Schedule> ring_of(const Communicator& group, const Operation& operation) {
  if (operation.collective == Collective::send_recv) return test::empty_schedule(group, operation);
  return std::make_shared<Schedule>(
      staged(operation, {}, [](const Operation& in_place) { return build_algorithm(Algorithm::ring, in_place, {}); }));
}

Plan sharded_plan(const ShardedSetup& setup) {
  const OptimizerParallel sharing = parse_optimizer_parallel(setup.optimizer_parallel);
  std::vector<StageProgram> stages = sharded_programs(setup);
  for (StageProgram& stage : stages) stage.shard_ranks = shard_ranks(sharing, setup.devices);
  const Plan plan = make_plan(stages, test::overlapped(setup.shape, setup.shape.stages * setup.devices), ring_of);
  static_cast<void>(walk(plan));
  return plan;
}

/// Collectives of a role in a phase: "allreduce1: 192 among 0-2 1-3".
std::vector<std::string> meetings(const Plan& plan, std::uint32_t role, StepPhase phase) {
  std::vector<std::string> found;
  for (const PlanTask& task : plan.roles[role].tasks) {
    const auto* const work = std::get_if<CollectiveTask>(&task.work);
    if (work == nullptr || task.purpose.phase != phase) continue;
    const PlannedCollective& collective = plan.collectives[work->collective];
    std::string text = fmt::format("{}: {} among", collective.name, collective.operation.elements);
    for (const Communicator& group : plan.families[collective.family].groups) {
      std::string ranks;
      for (const Rank rank : group.ranks) ranks += fmt::format("{}{}", ranks.empty() ? "" : "-", rank);
      text += " " + ranks;
    }
    found.push_back(std::move(text));
  }
  return found;
}

// Weights of layers are summed over the devices with the same part, the head over all; they do not travel together.
TEST(ShardedPlan, GradientsAreSummedOverTheirMirrors) {
  const Plan plan = sharded_plan({});
  EXPECT_THAT(meetings(plan, 0, StepPhase::forward),
              ElementsAre("first.sum:forward: 64 among 0-1 2-3", "second.sum:forward: 64 among 0-1 2-3"));
  EXPECT_THAT(meetings(plan, 0, StepPhase::backward),
              ElementsAre("second.sum:gradient: 64 among 0-1 2-3", "first.sum:gradient: 64 among 0-1 2-3"));
  EXPECT_THAT(meetings(plan, 0, StepPhase::reduction),
              ElementsAre("allreduce1: 24 among 0-1-2-3", "allreduce2: 192 among 0-2 1-3"));
}

// A device with the only copy of a parameter sums nothing up, and divides nothing.
TEST(ShardedPlan, TheOnlyCopyIsUpdatedWithoutAReduction) {
  const Plan plan = sharded_plan({.devices = 2, .mean = true});
  EXPECT_THAT(meetings(plan, 0, StepPhase::reduction), ElementsAre("allreduce1: 24 among 0-1"));
  const Role& role = plan.roles.front();
  EXPECT_THAT(role.segments, testing::SizeIs(1));
  EXPECT_EQ(role.program->gradients[0].name, "head.weight");
  const auto means = std::ranges::count_if(role.program->kernels,
                                           [](const models::Kernel& kernel) { return kernel.name.ends_with(":mean"); });
  EXPECT_EQ(means, 1);
  for (const PlanTask& task : role.tasks) {
    const auto* block = std::get_if<KernelBlock>(&task.work);
    if (block == nullptr || task.purpose.phase != StepPhase::update) continue;
    const bool of_head = role.program->kernels[block->first].gradient == 0;
    EXPECT_EQ(task.after.empty(), !of_head) << role.program->kernels[block->first].name;
  }
}

// R1.15: PyNative mode with the whole batch on every device divides all gradients by the devices besides.
TEST(ShardedPlan, TheOnlyCopyIsDividedByTheDevicesBesides) {
  models::Program again = *sharded_plan({.devices = 2}).roles.front().program;
  std::erase_if(again.kernels, [](const models::Kernel& kernel) { return kernel.gradient != models::no_gradient; });
  models::add_updates(again, {.precision = models::precision_of(models::Amp::o0), .mean = true, .mean_again = true});
  const auto count = [&](std::string_view end) {
    return std::ranges::count_if(again.kernels, [&](const models::Kernel& one) { return one.name.ends_with(end); });
  };
  EXPECT_EQ(count(":mean"), 1);
  EXPECT_EQ(static_cast<std::size_t>(count(":mean_again")), again.gradients.size());
  EXPECT_GT(again.gradients.size(), 1U);
}

// P3.5, P3.6: groups lie inside a stage; a message goes to the same place of the next one.
TEST(ShardedPlan, StagesHaveTheirOwnGroups) {
  const Plan plan = sharded_plan({.shape = {.stages = 2, .micro_batches = 2}});
  EXPECT_THAT(plan.role_of, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(meetings(plan, 0, StepPhase::reduction), ElementsAre("allreduce1: 96 among 0-2 1-3"));
  EXPECT_THAT(meetings(plan, 1, StepPhase::reduction),
              ElementsAre("allreduce1: 24 among 4-5-6-7", "allreduce2: 96 among 4-6 5-7"));
  EXPECT_THAT(meetings(plan, 1, StepPhase::forward),
              ElementsAre("second.sum:forward: 64 among 4-5 6-7", "second.sum:forward: 64 among 4-5 6-7"));
  std::vector<std::int64_t> offsets;
  for (const PlanTask& task : plan.roles[0].tasks) {
    if (const auto* send = std::get_if<SendTask>(&task.work)) offsets.push_back(send->offset);
  }
  EXPECT_THAT(offsets, ElementsAre(4, 4));
}

// Parameters are shared by those that have the same part: two have those of layers, four the head.
TEST(ShardedPlan, SharesOfAParameterLieInItsMirrors) {
  const ShardedSetup setup{.optimizer_parallel = "zero1"};
  EXPECT_THAT(meetings(sharded_plan(setup), 0, StepPhase::reduction),
              ElementsAre("reducescatter1: 6 among 0-1-2-3", "reducescatter2: 96 among 0-2 1-3"));
  EXPECT_THAT(meetings(sharded_plan(setup), 0, StepPhase::gather),
              UnorderedElementsAre("allgather1: 96 among 0-2 1-3", "allgather2: 6 among 0-1-2-3"));
}

// O4.18: a shard of two of the four that have the head: gathered by neighbours, summed over those with the same part.
// The first axis of the head, 3, is odd; MindSpore's optimizer parallelism leaves it whole.
TEST(ShardedPlan, ShardsOfTwo) {
  EXPECT_THAT(
      meetings(sharded_plan({.optimizer_parallel = "zero1:shard=2"}), 0, StepPhase::reduction),
      ElementsAre("reducescatter1: 12 among 0-1 2-3", "mirror1: 12 among 0-2 1-3", "reducescatter2: 96 among 0-2 1-3"));
  EXPECT_THAT(meetings(sharded_plan({.optimizer_parallel = "on:threshold=0"}), 0, StepPhase::reduction),
              ElementsAre("allreduce1: 24 among 0-1-2-3", "reducescatter2: 96 among 0-2 1-3"));
}

// The threshold looks at the whole parameter, 96 numbers of 4 bytes, not at the 48 of a device.
TEST(ShardedPlan, TheThresholdIsOfTheWholeParameter) {
  const ShardedGraph network = test::paired_layers(4);
  std::vector<ParameterCopies> copies;
  for (std::uint32_t parameter = 0; parameter < 5; ++parameter) {
    copies.push_back({network.copies(parameter), network.parameters[parameter].shape.elements()});
  }
  std::vector<std::string> notes;
  const auto shards = [&](Bytes threshold) {
    const OptimizerParallel sharing{.kind = OptimizerParallelKind::on, .threshold = threshold};
    return share_parameters(network.graph, sharing, 4, sizeof(float), notes, copies).shards;
  };
  EXPECT_THAT(shards(384), ElementsAre(2, 2, 2, 2, 1));
  EXPECT_THAT(shards(385), ElementsAre(1, 1, 1, 1, 1));
}

// D9.16: recomputed layers repeat their collectives, or keep their outputs.
TEST(ShardedPlan, RecomputedLayersRepeatTheirCollectives) {
  EXPECT_THAT(meetings(sharded_plan({.recompute = "full"}), 0, StepPhase::backward),
              ElementsAre("second.sum:recompute_forward: 64 among 0-1 2-3", "second.sum:gradient: 64 among 0-1 2-3",
                          "first.sum:recompute_forward: 64 among 0-1 2-3", "first.sum:gradient: 64 among 0-1 2-3"));
  EXPECT_THAT(meetings(sharded_plan({.recompute = "full", .repeat_collectives = false}), 0, StepPhase::backward),
              ElementsAre("second.sum:gradient: 64 among 0-1 2-3", "first.sum:gradient: 64 among 0-1 2-3"));
}

// Devices 1 and 3 take twice as long for each kernel: they have a role of their own, and the same collectives.
TEST(ShardedPlan, DevicesThatTakeOtherTimesHaveRolesOfTheirOwn) {
  std::vector<StageProgram> programs = sharded_programs({});
  auto slow = std::make_shared<models::Program>(*programs.front().program);
  for (models::Kernel& kernel : slow->micro_batch()) kernel.duration *= 2;
  const std::shared_ptr<const models::Program> usual = programs.front().program;
  programs.front().of_devices = {usual, slow, usual, slow};
  const Plan plan = make_plan(programs, test::overlapped({}, 4), ring_of);
  EXPECT_THAT(plan.role_of, ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(plan.roles.size(), 2U);
  const Plan same = sharded_plan({});
  EXPECT_EQ(plan.collectives.size(), same.collectives.size());
  for (const std::uint32_t role : {0U, 1U}) {
    EXPECT_EQ(meetings(plan, role, StepPhase::forward), meetings(same, 0, StepPhase::forward));
    EXPECT_EQ(meetings(plan, role, StepPhase::reduction), meetings(same, 0, StepPhase::reduction));
  }
  EXPECT_NEAR(walk(plan).end, 2 * walk(same).end, 1e-9);  // all wait for the slow ones
}

/// As rank 0 sees the first step, on links of 1 us and 10 GB/s without task costs.
StepView simulated(const ShardedSetup& setup) {
  return test::in_child([&] {
    test::TestPlatform platform;
    platform.npus_per_server = setup.devices;
    platform.properties = test::no_task_costs();
    test::Rig rig(test::write_platform(platform), sim::NetworkKind::fluid);
    rig.trace.select({0}, setup.devices, false);
    const Plan plan = sharded_plan(setup);
    PlanExecutor executor(plan, rig.runtime, rig.trace, {}, 1);
    executor.start();
    rig.runtime.run();
    return StepView::of(plan, rig.trace, 0);
  });
}

// Forward: up, down, sum, add; up, down, sum, add; head, loss. Backward: two kernels of the head, sum, two of down, two
// of up, sum, two of down, one of up: its input needs no gradient. Nothing is computed beside a sum.
constexpr double sum_of_rows = 2 * (1 + 8 * 8 * 4 / 2.0 / 1e4);  // 256 bytes in two rounds of halves, us

TEST(ShardedPlan, SumsOfTwoNpusAreOnTheCriticalPath) {
  const StepView view = simulated({.devices = 2});
  EXPECT_NEAR(view.fp_end / us, 8 * 10 + 2 * sum_of_rows, 1e-9);
  EXPECT_NEAR(view.bp_end / us, 17 * 10 + 4 * sum_of_rows, 1e-9);
  // The head is summed over both NPUs beside the backward pass, and nothing else is to be reduced.
  EXPECT_NEAR(view.iteration_end / us, 17 * 10 + 4 * sum_of_rows, 1e-9);
  EXPECT_NEAR(view.exposed / us, 4 * sum_of_rows, 1e-9);
}

TEST(ShardedPlan, GradientsOfFourNpusFollowTheBackwardPass) {
  const StepView view = simulated({.devices = 4});
  EXPECT_NEAR(view.bp_end / us, 17 * 10 + 4 * sum_of_rows, 1e-9);
  // 192 numbers of all layers over two ranks, complete with the last kernel; the head is long over.
  const double last = 2 * (1 + 192 * 4 / 2.0 / 1e4);
  EXPECT_NEAR(view.iteration_end / us, 17 * 10 + 4 * sum_of_rows + last, 1e-9);
}

TEST(ShardedPlan, RecomputingRepeatsKernelsAndSums) {
  // up and down of both layers once more, and their sums.
  const StepView view = simulated({.devices = 2, .recompute = "full"});
  EXPECT_NEAR(view.computing / us, 17 * 10 + 4 * 10, 1e-9);
  // A repeated sum is beside what repeats nothing: the kernels of its gradient wait for the sum of the gradient, behind
  // it in the stream. The head's gradient is summed beside kernels.
  EXPECT_NEAR(view.bp_end / us, 21 * 10 + 6 * sum_of_rows, 1e-9);
}

}  // namespace
}  // namespace hcclsim::hccl
