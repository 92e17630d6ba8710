#include "study/files/context/apply_context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using testing::Contains;
using testing::HasSubstr;

using Settings = std::initializer_list<std::pair<const char*, const char*>>;

AutoParallelContext context_of(Settings settings) {
  AutoParallelContext context;
  for (const auto& [key, value] : settings) context.set(key, *parse_literal(value));
  return context;
}

RunSpec applied(Settings settings, RunSpec spec = {}, const GivenOptions& given = {}) {
  apply_context(context_of(settings), given, spec);
  return spec;
}

std::string refused(const char* kind, Settings settings, const RunSpec& spec = {}) {
  return test::refusal(kind, [&] { static_cast<void>(applied(settings, spec)); });
}

TEST(ApplyContext, Pipelines) {
  const RunSpec spec = applied({{"parallel_mode", "semi_auto_parallel"},
                                {"pipeline_stages", "4"},
                                {"pipeline_config", "{'pipeline_interleave': True, 'pipeline_scheduler': 'gpipe'}"}});
  EXPECT_EQ(spec.step.shape.stages, 4U);
  EXPECT_EQ(spec.step.shape.schedule, hccl::PipelineSchedule::gpipe_interleave);
  EXPECT_EQ(spec.step.framework, Framework::mindspore);
  EXPECT_TRUE(spec.step.hcom_parallel);
  EXPECT_THAT(refused("runtime-error", {{"pipeline_stages", "4"}}), HasSubstr("not stand_alone"));
  EXPECT_THAT(refused("runtime-error", {{"parallel_mode", "data_parallel"}, {"pipeline_stages", "4"}}),
              HasSubstr("not data_parallel"));
  EXPECT_THAT(
      refused("runtime-error",
              {{"parallel_mode", "auto_parallel"}, {"pipeline_stages", "4"}, {"search_mode", "dynamic_programming"}}),
      HasSubstr("recursive_programming"));
  RunSpec two;
  two.step.shape.stages = 2;
  EXPECT_THAT(
      test::refusal("option",
                    [&] {
                      static_cast<void>(applied({{"parallel_mode", "semi_auto_parallel"}, {"pipeline_stages", "4"}},
                                                two, {.stages = true}));
                    }),
      HasSubstr("different things"));
}

/// The compiler's search, where operators have no strategies otherwise.
TEST(ApplyContext, AutoParallelSearchesStrategies) {
  using enum StrategySearchMode;
  EXPECT_EQ(applied({{"parallel_mode", "auto_parallel"}}).parallel.operators.search, recursive_programming);
  const RunSpec dynamic = applied({{"parallel_mode", "auto_parallel"}, {"search_mode", "dynamic_programming"}});
  EXPECT_EQ(dynamic.parallel.operators.search, dynamic_programming);
  EXPECT_TRUE(dynamic.parallel.operators.cuts());
  EXPECT_EQ(applied({{"parallel_mode", "semi_auto_parallel"}}).parallel.operators.search, std::nullopt);
  const Settings propagation{{"parallel_mode", "auto_parallel"}, {"search_mode", "sharding_propagation"}};
  EXPECT_THAT(refused("runtime-error", propagation), HasSubstr("give at least one with --strategy"));
  RunSpec spec;
  spec.parallel.operators.strategy = "given.json";
  EXPECT_EQ(applied(propagation, spec).parallel.operators.search, sharding_propagation);
  RunSpec shared;
  shared.parallel.operators.model = 2;
  const RunSpec as_told = applied({{"parallel_mode", "auto_parallel"}}, shared);
  EXPECT_EQ(as_told.parallel.operators.search, std::nullopt);
  EXPECT_THAT(as_told.notes, Contains(HasSubstr("search_mode has no effect")));
  AutoParallelContext pynative = context_of({{"parallel_mode", "auto_parallel"}});
  pynative.set_graph_mode(false);
  RunSpec eager;
  apply_context(pynative, {}, eager);
  EXPECT_EQ(eager.parallel.operators.search, std::nullopt);
}

TEST(ApplyContext, OptimizerParallel) {
  const RunSpec spec = applied(
      {{"parallel_mode", "semi_auto_parallel"},
       {"enable_parallel_optimizer", "True"},
       {"parallel_optimizer_config", "{'optimizer_weight_shard_size': 4, 'gradient_accumulation_shard': True}"}});
  EXPECT_EQ(spec.parallel.optimizer.kind, hccl::OptimizerParallelKind::on);
  EXPECT_EQ(spec.parallel.optimizer.shard, 4U);
  EXPECT_EQ(spec.parallel.optimizer.threshold, Bytes{64} << 10U);
  EXPECT_TRUE(spec.parallel.optimizer.accumulation_shard);
  // Without it the settings say nothing.
  EXPECT_EQ(applied({{"parallel_mode", "semi_auto_parallel"},
                     {"parallel_optimizer_config", "{'optimizer_weight_shard_size': 4}"}})
                .parallel.optimizer.kind,
            hccl::OptimizerParallelKind::off);
  EXPECT_THAT(refused("runtime-error", {{"parallel_mode", "hybrid_parallel"}, {"enable_parallel_optimizer", "True"}}),
              HasSubstr("hybrid_parallel"));
  EXPECT_THAT(refused("runtime-error", {{"parallel_mode", "stand_alone"}, {"enable_parallel_optimizer", "True"}}),
              HasSubstr("stand_alone"));
  EXPECT_THAT(refused("runtime-error", {{"parallel_mode", "data_parallel"}, {"enable_parallel_optimizer", "True"}}),
              HasSubstr("Lamb or AdamWeightDecay, not momentum"));
  EXPECT_THAT(applied({{"parallel_mode", "semi_auto_parallel"},
                       {"enable_parallel_optimizer", "True"},
                       {"parallel_optimizer_config", "{'optimizer_weight_shard_size': 1}"}})
                  .notes,
              Contains(HasSubstr("is ignored")));
}

/// What the command line shares is judged like what the context does.
TEST(ApplyContext, OptimizerParallelOfTheCommandLine) {
  const auto given = [](const char* kind, Settings settings) {
    RunSpec spec;
    spec.parallel.optimizer = hccl::parse_optimizer_parallel(kind);
    return applied(settings, spec, {.optimizer = true});
  };
  const auto refusal = [&](const char* error, const char* kind, Settings settings) {
    return test::refusal(error, [&] { static_cast<void>(given(kind, settings)); });
  };
  EXPECT_THAT(refusal("runtime-error", "on", {{"parallel_mode", "hybrid_parallel"}}),
              HasSubstr("--optimizer-parallel does not go with parallel_mode hybrid_parallel"));
  EXPECT_THAT(refusal("runtime-error", "dealt", {{"parallel_mode", "data_parallel"}}), HasSubstr("Lamb"));
  EXPECT_THAT(refusal("option", "dealt", {{"parallel_mode", "semi_auto_parallel"}}), HasSubstr("it is on"));
  EXPECT_THAT(
      refusal("option", "on", {{"parallel_mode", "semi_auto_parallel"}, {"enable_parallel_optimizer", "False"}}),
      testing::AllOf(HasSubstr("enable_parallel_optimizer False"), HasSubstr("--optimizer-parallel on")));
  EXPECT_THAT(
      refusal("option", "off", {{"parallel_mode", "semi_auto_parallel"}, {"enable_parallel_optimizer", "True"}}),
      HasSubstr("contradict"));
  EXPECT_THAT(
      refusal("option", "zero1", {{"parallel_mode", "semi_auto_parallel"}, {"enable_parallel_optimizer", "True"}}),
      HasSubstr("zero1"));
  // Shard and threshold of both count.
  const RunSpec both = given("on:shard=4", {{"parallel_mode", "semi_auto_parallel"},
                                            {"enable_parallel_optimizer", "True"},
                                            {"parallel_optimizer_config", "{'parallel_optimizer_threshold': 8}"}});
  EXPECT_EQ(both.parallel.optimizer.shard, 4U);
  EXPECT_EQ(both.parallel.optimizer.threshold, Bytes{8} << 10U);
  EXPECT_THAT(refusal("option", "on:shard=4",
                      {{"parallel_mode", "semi_auto_parallel"},
                       {"enable_parallel_optimizer", "True"},
                       {"optimizer_weight_shard_size", "8"}}),
              HasSubstr("optimizer_weight_shard_size"));
  EXPECT_THAT(refusal("option", "on:threshold=4",
                      {{"parallel_mode", "semi_auto_parallel"},
                       {"enable_parallel_optimizer", "True"},
                       {"parallel_optimizer_config", "{'parallel_optimizer_threshold': 8}"}}),
              HasSubstr("parallel_optimizer_threshold"));
}

/// Interleaving needs lazy inline, which does not go with sums in parts.
TEST(ApplyContext, InterleaveAndAccumulationShard) {
  EXPECT_THAT(refused("runtime-error", {{"parallel_mode", "semi_auto_parallel"},
                                        {"pipeline_stages", "2"},
                                        {"pipeline_config", "{'pipeline_interleave': True}"},
                                        {"enable_parallel_optimizer", "True"},
                                        {"parallel_optimizer_config", "{'gradient_accumulation_shard': True}"}}),
              HasSubstr("lazy inline"));
}

/// P3.4
TEST(ApplyContext, Segments) {
  const RunSpec spec =
      applied({{"parallel_mode", "semi_auto_parallel"}, {"pipeline_stages", "2"}, {"pipeline_segments", "3"}});
  EXPECT_EQ(spec.step.shape.chunks, 3U);
  EXPECT_EQ(spec.step.shape.schedule, hccl::PipelineSchedule::one_f_one_b_interleave);
  EXPECT_THAT(applied({{"parallel_mode", "semi_auto_parallel"}, {"pipeline_segments", "3"}}).notes,
              Contains(HasSubstr("pipeline_segments has no effect without pipeline_stages")));
}

TEST(ApplyContext, Fusion) {
  EXPECT_EQ(applied({{"parallel_mode", "data_parallel"}, {"all_reduce_fusion_config", "[85, 160]"}}).fusion_index,
            (std::vector<std::uint32_t>{85, 160}));
  const RunSpec size = applied(
      {{"parallel_mode", "semi_auto_parallel"}, {"comm_fusion", "{'allreduce': {'mode': 'size', 'config': 32}}"}});
  EXPECT_EQ(size.parallel.fusion->allreduce.threshold, Bytes{32} << 20U);
  EXPECT_EQ(size.parallel.fusion->allgather.threshold, Bytes{64} << 20U);
  const RunSpec kinds = applied({{"parallel_mode", "semi_auto_parallel"},
                                 {"comm_fusion",
                                  "{'allgather': {'mode': 'size', 'config': 8}, "
                                  "'reducescatter': {'mode': 'auto', 'config': None}}"},
                                 {"all_reduce_fusion_config", "[7]"}});
  EXPECT_EQ(to_string(*kinds.parallel.fusion), "allreduce index 7, reduce-scatter size 64 MB, allgather size 8 MB");
  const RunSpec data =
      applied({{"parallel_mode", "data_parallel"}, {"comm_fusion", "{'allreduce': {'mode': 'size', 'config': 32}}"}});
  EXPECT_TRUE(data.parallel.fusion->allreduce.ends_above);
  EXPECT_FALSE(applied({{"parallel_mode", "data_parallel"}}).parallel.fusion.has_value());
  const RunSpec closed = applied({{"parallel_mode", "semi_auto_parallel"}, {"comm_fusion", "{'openstate': False}"}});
  EXPECT_EQ(closed.parallel.fusion->allreduce.mode, hccl::FusionMode::all);
  EXPECT_EQ(applied({{"parallel_mode", "semi_auto_parallel"}}).parallel.fusion->allreduce.threshold, Bytes{64} << 20U);
}

/// F2.37: a size cuts what the list makes; the order of the two does not matter in data parallelism.
TEST(ApplyContext, IndexAndSizeOfDataParallelism) {
  for (const bool list_first : {true, false}) {
    AutoParallelContext context = context_of({{"parallel_mode", "data_parallel"}});
    if (list_first) context.set("all_reduce_fusion_config", *parse_literal("[3, 5000000000]"));
    context.set("comm_fusion", *parse_literal("{'allreduce': {'mode': 'size', 'config': 2}}"));
    if (!list_first) context.set("all_reduce_fusion_config", *parse_literal("[3, 5000000000]"));
    RunSpec spec;
    apply_context(context, {}, spec);
    EXPECT_EQ(spec.parallel.fusion->allreduce,
              (hccl::FusionRule{
                  .mode = hccl::FusionMode::index, .threshold = Bytes{2} << 20U, .last = {3}, .ends_above = true}));
    EXPECT_FALSE(spec.fusion_index.has_value());
    // F2.15 beyond 32 bits
    EXPECT_THAT(spec.notes, Contains(HasSubstr("fusion index 5000000000 is left out")));
  }
  // F2.7: openstate False leaves the list.
  const RunSpec closed = applied({{"parallel_mode", "data_parallel"},
                                  {"all_reduce_fusion_config", "[3]"},
                                  {"comm_fusion", "{'allreduce': {'mode': 'size', 'config': 2}, 'openstate': False}"}});
  EXPECT_EQ(closed.fusion_index, std::vector<std::uint32_t>{3});
  EXPECT_FALSE(closed.parallel.fusion.has_value());
  // Only a list acts in hybrid_parallel.
  const RunSpec hybrid =
      applied({{"parallel_mode", "hybrid_parallel"}, {"comm_fusion", "{'allreduce': {'mode': 'size', 'config': 2}}"}});
  EXPECT_FALSE(hybrid.parallel.fusion.has_value());
  EXPECT_THAT(hybrid.notes, Contains("comm_fusion has no effect in hybrid_parallel"));
}

/// F2.22: a list cuts gradients in graph mode; in MindSpore 2.3 sizes do.
TEST(ApplyContext, IndexOfGraphMode) {
  const Settings listed{{"parallel_mode", "semi_auto_parallel"},
                        {"comm_fusion", "{'allreduce': {'mode': 'index', 'config': [3]}, 'openstate': False}"}};
  const RunSpec spec = applied(listed);
  EXPECT_EQ(spec.parallel.fusion->allreduce, (hccl::FusionRule{.mode = hccl::FusionMode::index, .last = {3}}));
  EXPECT_EQ(spec.parallel.fusion->allgather.mode, hccl::FusionMode::all);
  AutoParallelContext compat(true);
  compat.set("parallel_mode", *parse_literal("semi_auto_parallel"));
  compat.set("all_reduce_fusion_config", *parse_literal("[3]"));
  RunSpec quirk;
  apply_context(compat, {}, quirk);
  EXPECT_EQ(quirk.parallel.fusion->allreduce, (hccl::FusionRule{.counts_as_mindspore = true}));
  EXPECT_THAT(quirk.notes, Contains(HasSubstr("all_reduce_fusion_config has no effect in semi_auto_parallel")));
}

/// A size of 0 passes the setter of MindSpore 2.3.
TEST(ApplyContext, SizesOfZero) {
  const auto with = [](const char* mode) {
    AutoParallelContext context(true);
    context.set("parallel_mode", *parse_literal(mode));
    context.set("comm_fusion", *parse_literal("{'allreduce': {'mode': 'size', 'config': 0}}"));
    RunSpec spec;
    apply_context(context, {}, spec);
    return spec;
  };
  EXPECT_EQ(with("data_parallel").parallel.fusion->allreduce.mode, hccl::FusionMode::none);
  EXPECT_THAT(test::refusal("runtime-error", [&] { static_cast<void>(with("semi_auto_parallel")); }),
              HasSubstr("comm_fusion['allreduce']"));
}

TEST(ApplyContext, FusionAndSplitsOfTheCommandLine) {
  RunSpec split;
  split.split_by_idx = {1, 2};
  const auto given = [&](Settings settings) { return applied(settings, split, {.split_by_idx = true}); };
  EXPECT_THAT(test::refusal(
                  "option",
                  [&] {
                    static_cast<void>(given({{"parallel_mode", "data_parallel"}, {"all_reduce_fusion_config", "[1]"}}));
                  }),
              HasSubstr("--split-by-idx and comm_fusion"));
  const RunSpec spec = given({{"parallel_mode", "semi_auto_parallel"}});
  EXPECT_FALSE(spec.parallel.fusion.has_value());
  EXPECT_THAT(spec.notes, Contains(HasSubstr("gradients are split by --split-by-idx")));
  EXPECT_THAT(test::refusal("option",
                            [] {
                              static_cast<void>(applied({{"parallel_mode", "data_parallel"}}, {}, {.framework = true}));
                            }),
              HasSubstr("--framework tf"));
}

/// One note for each option that changes nothing.
TEST(ApplyContext, OptionsWithoutEffect) {
  const RunSpec spec = applied({{"parallel_mode", "data_parallel"},
                                {"gradient_fp32_sync", "False"},
                                {"search_mode", "sharding_propagation"},
                                {"enable_alltoall", "True"},
                                {"force_fp32_communication", "True"},
                                {"loss_repeated_mean", "True"},  // its default
                                {"strategy_ckpt_save_file", "a.json"},
                                {"comm_fusion", "{'allgather': {'mode': 'size', 'config': 2}}"},
                                {"parallel_optimizer_config", "{'parallel_optimizer_threshold': 1}"}});
  for (const char* const key : {"gradient_fp32_sync", "search_mode", "enable_alltoall", "force_fp32_communication",
                                "strategy_ckpt_save_file", "comm_fusion['allgather']", "parallel_optimizer_config"}) {
    const auto says = [&](const std::string& note) { return note.starts_with(key) && note.find("no effect") < 60; };
    EXPECT_EQ(std::count_if(spec.notes.begin(), spec.notes.end(), says), 1) << key;
  }
  EXPECT_THAT(spec.notes, testing::Not(Contains(HasSubstr("loss_repeated_mean"))));
  EXPECT_EQ(spec.strategy_files.save, "");
  EXPECT_EQ(spec.communication_type, DataType::fp32);
}

/// R1.27
TEST(ApplyContext, SeedsOfInitialWeights) {
  AutoParallelContext context = context_of({{"parallel_mode", "data_parallel"}});
  context.set_seed();
  RunSpec spec;
  apply_context(context, {}, spec);
  EXPECT_THAT(spec.notes, testing::Not(Contains(HasSubstr("parameter_broadcast"))));
}

/// R1.15
TEST(ApplyContext, PynativeModeWithFullBatch) {
  AutoParallelContext context = context_of({{"parallel_mode", "auto_parallel"}, {"full_batch", "True"}});
  context.set_graph_mode(false);
  RunSpec spec;
  spec.numerics.emplace();
  apply_context(context, {}, spec);
  EXPECT_FALSE(spec.gradients_mean_kernels);
  EXPECT_TRUE(spec.mean_again);
  EXPECT_FALSE(spec.numerics->gradients_mean);
  EXPECT_TRUE(spec.numerics->mean_again);
  EXPECT_THAT(spec.notes, Contains(HasSubstr("divided by device_num")));

  context = context_of({{"parallel_mode", "auto_parallel"}, {"full_batch", "True"}, {"gradients_mean", "True"}});
  context.set_graph_mode(false);
  RunSpec twice;
  twice.numerics.emplace();
  apply_context(context, {}, twice);
  EXPECT_TRUE(twice.gradients_mean_kernels && twice.mean_again);
  EXPECT_TRUE(twice.numerics->gradients_mean && twice.numerics->mean_again);
  EXPECT_THAT(twice.notes, Contains(HasSubstr("divided by device_num once more")));
}

TEST(ApplyContext, ImpliedModes) {
  AutoParallelContext data;
  set_implied_mode(data, {});
  EXPECT_EQ(data.text("parallel_mode"), "data_parallel");
  AutoParallelContext stages = context_of({{"pipeline_stages", "2"}});
  set_implied_mode(stages, {});
  EXPECT_EQ(stages.text("parallel_mode"), "semi_auto_parallel");
  AutoParallelContext alone = context_of({{"parallel_mode", "stand_alone"}, {"pipeline_stages", "2"}});
  set_implied_mode(alone, {});
  EXPECT_EQ(alone.text("parallel_mode"), "stand_alone");
}

TEST(ApplyContext, DevicesAndModes) {
  EXPECT_EQ(applied({{"parallel_mode", "data_parallel"}, {"device_num", "4"}}).npus, 4U);
  EXPECT_EQ(applied({}).npus, 1U);
  EXPECT_THAT(refused("value-error", {{"parallel_mode", "stand_alone"}, {"device_num", "4"}}), HasSubstr("one device"));
  EXPECT_THAT(refused("runtime-error", {{"device_num", "1"}, {"global_rank", "4"}}), HasSubstr("global_rank 4"));
  EXPECT_THAT(refused("runtime-error", {{"parallel_mode", "data_parallel"}, {"dataset_strategy", "full_batch"}}),
              HasSubstr("not data_parallel"));
  EXPECT_EQ(applied({{"parallel_mode", "semi_auto_parallel"}, {"dataset_strategy", "((8, 1), (8,))"}}).dataset_cuts,
            (std::vector<std::vector<std::uint32_t>>{{8, 1}, {8}}));
  EXPECT_THAT(refused("runtime-error", {{"parallel_mode", "semi_auto_parallel"}, {"dataset_strategy", "((0, 1),)"}}),
              HasSubstr("1 or more slices"));
  const auto saved = applied({{"parallel_mode", "semi_auto_parallel"}, {"strategy_ckpt_save_file", "'a.json'"}});
  EXPECT_EQ(saved.strategy_files.save, "a.json");
  EXPECT_THAT(applied({{"parallel_mode", "data_parallel"}}).notes, Contains(HasSubstr("parameter_broadcast is False")));
}

// R1.14: of semi_auto_parallel and auto_parallel, whose operators have collectives, whatever type gradients are given.
TEST(ApplyContext, SumsOfOperatorsInFp32) {
  const auto widened = [](const char* mode, RunSpec spec = {}) {
    return applied({{"parallel_mode", mode}, {"force_fp32_communication", "True"}}, std::move(spec)).fp32_sums;
  };
  EXPECT_TRUE(widened("semi_auto_parallel"));
  EXPECT_TRUE(widened("auto_parallel"));
  EXPECT_FALSE(widened("data_parallel"));
  EXPECT_FALSE(applied({{"parallel_mode", "semi_auto_parallel"}}).fp32_sums);
  RunSpec zero;
  zero.parallel.optimizer = hccl::parse_optimizer_parallel("zero2");
  EXPECT_TRUE(widened("semi_auto_parallel", zero));
}

// A context that says how many devices there are and not how they work together.
TEST(ApplyContext, ModesThatAreNotSet) {
  EXPECT_THAT(refused("value-error", {{"device_num", "8"}}),
              HasSubstr("device_num 8: parallel_mode is not set, so that it is stand_alone"));
  EXPECT_THAT(refused("value-error", {{"gradients_mean", "True"}}, {.npus = 8}),
              HasSubstr("set parallel_mode in the context, such as data_parallel"));
  EXPECT_THAT(refused("value-error", {{"parallel_mode", "stand_alone"}}, {.npus = 8}),
              HasSubstr("--npus 8: parallel_mode is stand_alone, which has one device"));
  EXPECT_THAT(refused("runtime-error", {{"pipeline_stages", "2"}}), HasSubstr("parallel_mode is not set"));
}

TEST(ApplyContext, TypesOfGradients) {
  using Sync = models::GradientSync;
  EXPECT_EQ(applied({{"parallel_mode", "data_parallel"}}).gradient_sync, (Sync{.in_fp32 = true}));
  // Not applicable in data_parallel, whose gradients are always reduced in fp32.
  EXPECT_EQ(applied({{"parallel_mode", "data_parallel"}, {"gradient_fp32_sync", "False"}}).gradient_sync,
            (Sync{.in_fp32 = true}));
  EXPECT_EQ(applied({{"parallel_mode", "stand_alone"}}).gradient_sync, std::nullopt);
  EXPECT_EQ(applied({{"parallel_mode", "semi_auto_parallel"}}).gradient_sync, Sync{});
  const RunSpec as_used = applied({{"parallel_mode", "semi_auto_parallel"}, {"gradient_fp32_sync", "False"}});
  EXPECT_EQ(as_used.gradient_sync, (Sync{.as_used = true}));
  EXPECT_EQ(applied({{"parallel_mode", "semi_auto_parallel"},
                     {"gradient_fp32_sync", "False"},
                     {"force_fp32_communication", "True"}})
                .gradient_sync,
            (Sync{.as_used = true, .in_fp32 = true}));
  // ZeRO has types of its own, whatever its gradients are reduced in.
  RunSpec zero;
  zero.parallel.optimizer = hccl::parse_optimizer_parallel("zero2");
  EXPECT_EQ(applied({{"parallel_mode", "semi_auto_parallel"}}, zero).gradient_sync, std::nullopt);
  EXPECT_EQ(applied({{"parallel_mode", "semi_auto_parallel"}, {"gradient_fp32_sync", "False"}}, zero).gradient_sync,
            std::nullopt);
  EXPECT_EQ(
      applied({{"parallel_mode", "semi_auto_parallel"}, {"force_fp32_communication", "True"}}, zero).gradient_sync,
      (Sync{.in_fp32 = true, .as_written = true}));
  EXPECT_EQ(applied({{"parallel_mode", "data_parallel"}}, zero).gradient_sync,
            (Sync{.in_fp32 = true, .as_written = true}));
}

}  // namespace
}  // namespace hcclsim::study
