#include "study/compare/plans/plan_space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "models/zoo/zoo.hpp"
#include "study/compare/plans/planned_network.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

const PlannedNetwork four_layers{.layers = 4, .heads = 4, .features = 64, .vocabulary = 100, .rows = 16};

std::uint32_t number_in(const std::map<std::string, std::string>& plan, const char* option) {
  const auto found = plan.find(option);
  return found == plan.end() ? 1 : static_cast<std::uint32_t>(std::stoul(found->second));
}

// Four NPUs, data x model x stages = 4: 4x1x1, 2x2x1, 1x4x1, 2x1x2, 1x2x2, 1x1x4. Eight samples, of which a replica of
// a pipeline needs as many micro-batches as stages. One way to compute and to share.
TEST(PlanSpace, CountedByHand) {
  PlanSpace space{.npus = 4,
                  .global_batch = 8,
                  .most_model = 4,
                  .chunks = {1},
                  .recompute = {"none"},
                  .optimizer = {"off"},
                  .sequence = false,
                  .vocabulary = false};
  // Sizes of micro-batches: of 2 samples 1, 2; of 4 samples 1, 2, 4; of 8 samples 1, 2, 4, 8. With two stages at least
  // two micro-batches: of 4 samples 1, 2; of 8 samples 1, 2, 4; with four stages of 8 samples 1, 2.
  EXPECT_EQ(plans_of(space, four_layers).size(), 2U + 3U + 4U + 2U + 3U + 2U);
  // 100 rows of the table divide by 2 and 4, 16 positions too: both ways for each of 3 + 4 + 3 plans, so four in all.
  space.sequence.reset();
  space.vocabulary.reset();
  EXPECT_EQ(plans_of(space, four_layers).size(), 16U + 3U * 10U);
  // Shared by replicas, where there are several: 2 + 3 + 2 plans of 2 and 4 replicas, three of them cut operators.
  space.optimizer = {"off", "zero1"};
  EXPECT_EQ(plans_of(space, four_layers).size(), 46U + 2U + 4U * 3U + 2U);
}

// Seven layers on two stages: 4 and 3, of which one is half, or two chunks each of 2, 2, 2 and 1. Eight on two: four
// layers are 1, 2 or 4 chunks.
TEST(PlanSpace, LayersOfStages) {
  const PlanSpace space{.npus = 2, .global_batch = 2, .most_model = 1, .stages = {2}, .optimizer = {"off"}};
  const std::vector<PlanOptions> uneven = plans_of(space, {.layers = 7});
  ASSERT_EQ(uneven.size(), 6U);
  std::vector<std::string> recomputed;
  for (const PlanOptions& options : uneven) {
    std::map<std::string, std::string> plan(options.begin(), options.end());
    EXPECT_EQ(plan.at("stage-layers"), plan.contains("chunks") ? "2,2,2,1" : "4,3");
    recomputed.push_back(plan["recompute"]);
  }
  EXPECT_THAT(recomputed, testing::ElementsAre("", "layers:1", "full", "", "layers:1", "full"));
  const std::vector<PlanOptions> even = plans_of(space, {.layers = 8});
  EXPECT_EQ(even.size(), 9U);
  for (const PlanOptions& options : even) {
    EXPECT_EQ(std::map(options.begin(), options.end()).count("stage-layers"), 0U);
  }
}

std::size_t count_with(const std::vector<PlanOptions>& plans, const std::string& option, const std::string& value) {
  const std::pair choice(option, value);
  return static_cast<std::size_t>(std::ranges::count_if(
      plans, [&](const PlanOptions& plan) { return std::ranges::find(plan, choice) != plan.end(); }));
}

// Four NPUs and one sequence of 8192 positions per micro-batch: 4, 2 or 1 replicas of 1, 2 or 4 ranks that share
// positions, of which each keeps 2048 at least. All-to-alls need as many heads of queries, of which there are 2.
TEST(PlanSpace, RanksThatSharePositions) {
  PlanSpace space{
      .npus = 4, .global_batch = 4, .most_model = 1, .stages = {1}, .micro_batch = {1}, .optimizer = {"off"}};
  space.recompute = {"none"};
  const PlannedNetwork network{.layers = 1, .heads = 1, .features = 64, .rows = 8192, .queries = 2};
  const std::vector<PlanOptions> plans = plans_of(space, network);
  EXPECT_EQ(plans.size(), 1U + 2U + 1U);
  EXPECT_EQ(count_with(plans, "context-parallel", "2"), 2U);
  EXPECT_EQ(count_with(plans, "context-kind", "ulysses"), 1U);
  EXPECT_EQ(count_with(plans, "context-kind", "ring"), 2U);
  space.context = {2};
  space.context_kind = {"ring"};
  EXPECT_EQ(plans_of(space, network).size(), 1U);
}

// Eight NPUs with 6 experts: those with rows of their own are 8 / tp, and divisors of both numbers share experts; as
// wholes all 8 do, where positions are shared between operators.
TEST(PlanSpace, RanksThatShareExperts) {
  PlanSpace space{.npus = 8,
                  .global_batch = 8,
                  .most_model = 2,
                  .stages = {1},
                  .micro_batch = {1},
                  .recompute = {"none"},
                  .optimizer = {"off"},
                  .vocabulary = false};
  const PlannedNetwork network{.layers = 1, .heads = 2, .features = 64, .rows = 1024, .queries = 2, .experts = 6};
  EXPECT_EQ(plans_of(space, network).size(), 2U + 2U * 2U);  // 1 or 2 ranks share; both ways of two model ranks
  space.whole_experts = true;
  EXPECT_EQ(plans_of(space, network).size(), 2U + 2U);
  space.experts = {2};
  EXPECT_EQ(plans_of(space, network).size(), 1U + 1U);
}

// What files of other programs can say: two ways to share states, and the table of tokens is cut with other operators
// (Megatron); no operators are cut, and all parameters are shared (FSDP2).
TEST(PlanSpace, WhatLaunchFilesCanSay) {
  PlanSpace space{.npus = 2, .global_batch = 2, .most_model = 2, .stages = {1}, .micro_batch = {1}};
  space.said_by = LaunchProgram::megatron;
  const std::vector<PlanOptions> megatron = plans_of(space, four_layers);
  // One replica of two ranks: 3 amounts of recomputing, both ways to share rows. Two replicas: 3 amounts, two ways.
  EXPECT_EQ(megatron.size(), 3U * 2U + 3U * 2U);
  EXPECT_EQ(count_with(megatron, "vocabulary-parallel", "on"), 6U);
  EXPECT_EQ(count_with(megatron, "optimizer-parallel", "zero1"), 3U);
  EXPECT_EQ(count_with(megatron, "mp-comm-recompute", "off"), 0U);
  space.said_by = LaunchProgram::mindformers;
  EXPECT_EQ(count_with(plans_of(space, four_layers), "optimizer-parallel", "on"), 3U);
  space.said_by = LaunchProgram::fsdp2;
  const std::vector<PlanOptions> fsdp2 = plans_of(space, four_layers);
  EXPECT_EQ(fsdp2.size(), 2U);  // nothing or everything is computed again
  EXPECT_EQ(count_with(fsdp2, "optimizer-parallel", "zero3"), 2U);
}

// Layers that are computed again repeat the collectives of operators that are cut, or keep what these gave.
TEST(PlanSpace, CollectivesOfRecomputedLayers) {
  PlanSpace space{.npus = 2,
                  .global_batch = 1,
                  .most_model = 2,
                  .model = {1, 2},
                  .stages = {1},
                  .recompute = {"none", "full"},
                  .sequence = false,
                  .vocabulary = false};
  EXPECT_EQ(plans_of(space, four_layers).size(), 3U);  // of one replica, as one sample is not shared by two
  space.repeat = false;
  EXPECT_EQ(plans_of(space, four_layers).size(), 2U);  // without layers that are computed again there is no choice
}

// Two replicas that share nothing reduce their gradients in several ways; those of the other plans, with shared states,
// shared operators or two stages, in their own.
TEST(PlanSpace, WaysToReduceWholeGradients) {
  PlanSpace space{.npus = 2,
                  .global_batch = 2,
                  .most_model = 2,
                  .micro_batch = {1},
                  .chunks = {1},
                  .recompute = {"none"},
                  .optimizer = {"off", "zero1"},
                  .sequence = false,
                  .vocabulary = false};
  EXPECT_EQ(plans_of(space, four_layers).size(), 4U);
  space.reductions = {{}, {{"hcom-parallel", "on"}}, {{"hcom-parallel", "on"}, {"split", "none"}}};
  const std::vector<PlanOptions> plans = plans_of(space, four_layers);
  EXPECT_EQ(plans.size(), 6U);
  for (const PlanOptions& options : plans) {
    const std::map<std::string, std::string> plan(options.begin(), options.end());
    if (!plan.contains("hcom-parallel")) continue;
    for (const char* const other : {"model-parallel", "stages", "optimizer-parallel"}) {
      EXPECT_FALSE(plan.contains(other));
    }
  }
}

TEST(PlanSpace, WhatIsGivenIsFixed) {
  PlanSpace space{.npus = 8, .global_batch = 16, .most_model = 8, .model = {2}, .stages = {2}, .micro_batch = {1}};
  for (const PlanOptions& options : plans_of(space, four_layers)) {
    const std::map<std::string, std::string> plan(options.begin(), options.end());
    EXPECT_EQ(number_in(plan, "model-parallel"), 2U);
    EXPECT_EQ(number_in(plan, "stages"), 2U);
    EXPECT_EQ(number_in(plan, "micro-batch-size"), 1U);
  }
}

// Whatever the space: sizes go together, and no plan is there twice.
TEST(PlanSpace, PlansThatCanBe) {
  for (const Rank npus : {1U, 6U, 8U, 16U, 96U}) {
    const PlanSpace space{.npus = npus, .global_batch = 96, .most_model = 8};
    const std::vector<PlanOptions> plans = plans_of(space, four_layers);
    std::set<std::map<std::string, std::string>> different;
    for (const PlanOptions& options : plans) {
      const std::map<std::string, std::string> plan(options.begin(), options.end());
      EXPECT_TRUE(different.insert(plan).second);
      const std::uint32_t model = number_in(plan, "model-parallel");
      const std::uint32_t stages = number_in(plan, "stages");
      const std::uint32_t chunks = number_in(plan, "chunks");
      ASSERT_EQ(npus % (model * stages), 0U);
      const std::uint32_t data = npus / model / stages;
      ASSERT_EQ(96 % (data * number_in(plan, "micro-batch-size")), 0U);
      const std::uint32_t micro_batches = 96 / data / number_in(plan, "micro-batch-size");
      EXPECT_LE(stages * chunks, 4U);
      EXPECT_TRUE(stages == 1 || micro_batches >= stages);
      EXPECT_TRUE(chunks == 1 || (stages > 1 && micro_batches % stages == 0 && plan.contains("schedule")));
      EXPECT_TRUE(model > 1 || !(plan.contains("sequence-parallel") || plan.contains("vocabulary-parallel")));
      EXPECT_TRUE(data > 1 || !plan.contains("optimizer-parallel"));
    }
  }
}

TEST(PlanSpace, SaysThatThereIsNone) {
  const PlanSpace space{.npus = 8, .global_batch = 3};
  const PlannedNetwork convolutions{.layers = 1};
  EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(plans_of(space, convolutions)); }),
              testing::HasSubstr("no plan spreads 3 samples over 8 NPUs"));
}

TEST(PlanSpace, OfNetworks) {
  const PlannedNetwork llama = planned_network(models::make_model({.name = "llama2-13b", .batch = 1}));
  EXPECT_EQ(llama.layers, 40U);
  EXPECT_EQ(llama.heads, 40U);
  EXPECT_EQ(llama.features, 5120U);
  EXPECT_EQ(llama.vocabulary, 32000U);
  EXPECT_EQ(llama.rows, 4096U);
  EXPECT_EQ(planned_network(models::make_model({.name = "resnet50", .batch = 1})).heads, 0U);
}

}  // namespace
}  // namespace hcclsim::study
