#include "hccl/parallel/optimizer_parallel.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hccl/parallel/step_plan.hpp"
#include "models/lowering/lower.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/training/parallel_training.hpp"

namespace hcclsim::hccl {
namespace {

using models::Sharding;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Parameters (1000, 64), (512) and a number, fp32.
models::Graph three_parameters() {
  models::Graph graph;
  graph.title = "three";
  graph.parameters = {{.name = "table", .shape = {1000, 64}, .elements = 64000},
                      {.name = "bias", .shape = {512}, .elements = 512},
                      {.name = "large", .shape = {16, 4096}, .elements = 65536}};
  return graph;
}

std::vector<std::uint32_t> shards(const OptimizerParallel& options, Rank replicas, std::vector<std::string>& notes) {
  return share_parameters(three_parameters(), options, replicas, 4, notes).shards;
}

TEST(OptimizerParallel, LargeParametersWhoseFirstAxisDivides) {
  std::vector<std::string> notes;
  const OptimizerParallel on{.kind = OptimizerParallelKind::on};
  EXPECT_THAT(shards(on, 8, notes), ElementsAre(8, 1, 8));
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_THAT(shards(on, 16, notes), ElementsAre(1, 1, 16));  // 1000 rows are no multiple of 16
  EXPECT_THAT(notes, ElementsAre(HasSubstr("leaves 1 of 3 parameters whole")));
  EXPECT_THAT(shards(on, 1, notes), IsEmpty());
}

TEST(OptimizerParallel, ShardSize) {
  std::vector<std::string> notes;
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .shard = 2}, 4, notes), ElementsAre(2, 1, 2));
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .shard = 3}, 4, notes), ElementsAre(1, 1, 1));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("a shard size of 3 does not divide the 4 replicas")));
  EXPECT_EQ(shard_ranks({.kind = OptimizerParallelKind::on, .shard = 2}, 4), 2U);
  // MindSpore ignores a shard size of 1: all replicas share.
  notes.clear();
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .shard = 1}, 4, notes), ElementsAre(4, 1, 4));
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_EQ(shard_ranks({.kind = OptimizerParallelKind::on, .shard = 1}, 4), 4U);
  EXPECT_EQ(shard_ranks({.kind = OptimizerParallelKind::off}, 4), 4U);
}

TEST(OptimizerParallel, ThresholdCountsTheWholeParameter) {
  std::vector<std::string> notes;
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .threshold = 0}, 8, notes), ElementsAre(8, 8, 8));
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .threshold = 256'001}, 8, notes), ElementsAre(1, 1, 8));
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .threshold = 256'000}, 8, notes), ElementsAre(8, 1, 8));
}

TEST(OptimizerParallel, ZeroCutsEverything) {
  std::vector<std::string> notes;
  const OptimizerParallel zero{.kind = OptimizerParallelKind::zero2};
  const models::ShardingOptions sharding = share_parameters(three_parameters(), zero, 7, 4, notes);
  EXPECT_THAT(sharding.shards, ElementsAre(7, 7, 7));
  EXPECT_EQ(sharding.kind, Sharding::gradients);
  EXPECT_TRUE(sharding.keeps_gradient_parts());
  EXPECT_THAT(
      test::refusal("option",
                    [] { static_cast<void>(shard_ranks({.kind = OptimizerParallelKind::zero1, .shard = 3}, 8)); }),
      HasSubstr("does not divide the 8 replicas"));
  EXPECT_THAT(
      test::refusal("option",
                    [] { static_cast<void>(shard_ranks({.kind = OptimizerParallelKind::zero1, .shard = 9}, 8)); }),
      HasSubstr("more than the 8 replicas"));
}

/// O4.17: a shard size that is more than the replicas is that of all replicas.
TEST(OptimizerParallel, ShardsLargerThanTheReplicas) {
  std::vector<std::string> notes;
  EXPECT_EQ(shard_ranks({.kind = OptimizerParallelKind::on, .shard = 9}, 8), 8U);
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .shard = 9}, 8, notes), ElementsAre(8, 1, 8));
  EXPECT_THAT(notes, IsEmpty());
}

/// Kernels that move the table of tokens from the first stage to the last one, and its gradient back.
std::vector<models::Kernel> moves_of_table(const Plan& plan, std::uint32_t stage) {
  std::vector<models::Kernel> moves;
  for (const models::Kernel& kernel : plan.roles[stage].program->kernels) {
    if (kernel.kind != models::KernelClass::communication) continue;
    const models::CommunicationWork& work = *kernel.communication;
    if (work.input == models::no_tensor && work.output == models::no_tensor) moves.push_back(kernel);
  }
  return moves;
}

/// 32 tokens of 16 features. ZeRO has the whole table as a copy in the type of the products, in both stages.
TEST(OptimizerParallel, TiedTablesAreSentAsTheirOwnerHasThem) {
  test::ParallelSetup setup;
  setup.shape = {.stages = 2, .micro_batches = 2};
  setup.replicas = 2;
  setup.precision = models::precision_of(models::Amp::o2);
  const auto plan_with = [&](const char* kind) {
    setup.optimizer_parallel = kind;
    return test::plan_of(setup, test::stages_of(setup, models::make_model(setup.model)));
  };
  const Plan whole = plan_with("off");
  for (const char* const kind : {"off", "on:threshold=0", "zero1:threshold=64", "zero1", "zero2", "zero3"}) {
    SCOPED_TRACE(kind);
    const Plan plan = plan_with(kind);
    const bool copy = kind[0] == 'z' && std::string_view(kind) != "zero1:threshold=64";
    for (const std::uint32_t stage : {0U, 1U}) {
      const std::vector<models::Kernel> moves = moves_of_table(plan, stage);
      ASSERT_EQ(moves.size(), 2U);
      for (const models::Kernel& move : moves) {
        EXPECT_EQ(move.communication->elements, 32U * 16);
        const bool forward = move.phase == models::Phase::forward;
        EXPECT_EQ(move.communication->dtype, forward && copy ? DataType::fp16 : DataType::fp32) << stage;
      }
    }
    // The last stage has 2 bytes per number in place of 4 and a cast of 2 beside them.
    const models::Program& last = *plan.roles[1].program;
    const auto cast = [](const models::Kernel& kernel) { return kernel.name == "head:cast"; };
    EXPECT_EQ(std::ranges::any_of(last.kernels, cast), !copy);
  }
}

/// Gradients of fp16 and of fp32 travel apart, each type as its rule of fusion has it.
TEST(OptimizerParallel, FusesTypesOfGradientsApart) {
  models::Program program =
      lower(models::make_model({.name = "mlp:8,6,4", .batch = 2}),
            {.precision = models::precision_of(models::Amp::o2), .sync = models::GradientSync{.as_used = true}});
  const StageProgram stage = fuse_communication(std::move(program), {});
  ASSERT_EQ(stage.reductions.size(), 2U);
  std::vector<std::string> types;
  for (const Reduction& reduction : stage.reductions) {
    Bytes bytes = 0;
    for (std::uint32_t g = reduction.segment.first; g <= reduction.segment.last; ++g) {
      const models::Gradient& gradient = stage.program->gradients[g];
      EXPECT_EQ(gradient.dtype, stage.program->gradients[reduction.segment.first].dtype);
      bytes += gradient.elements * size_of(gradient.dtype);
    }
    types.push_back(fmt::format("{} {}", name_of(stage.program->gradients[reduction.segment.first].dtype), bytes));
  }
  EXPECT_THAT(types, testing::UnorderedElementsAre("fp16 144", "fp32 40"));
}

TEST(OptimizerParallel, IsRead) {
  EXPECT_EQ(parse_optimizer_parallel("off"), OptimizerParallel{});
  EXPECT_EQ(parse_optimizer_parallel("zero3:shard=8,threshold=16"),
            (OptimizerParallel{.kind = OptimizerParallelKind::zero3, .shard = 8, .threshold = Bytes{16} << 10U}));
  EXPECT_EQ(parse_optimizer_parallel("on:threshold=0").threshold, Bytes{0});
  for (const char* wrong :
       {"zero4", "on:shard=0", "on:shard", "on:shard=-1", "on:size=2", "on:", "on:shard=2,shard=2",
        "on:threshold=1,shard=2,threshold=1", "off:shard=2", "dealt:threshold=1", "zero2:shard=1", ""}) {
    EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(parse_optimizer_parallel(wrong)); }),
                HasSubstr("accepted: off|dealt|on|zero1|zero2|zero3"))
        << wrong;
  }
}

}  // namespace
}  // namespace hcclsim::hccl
