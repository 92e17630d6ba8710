#include "study/context/apply_context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

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

RunSpec applied(Settings settings, RunSpec spec = {}, const GivenOptions& given = {.file = true}) {
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
  EXPECT_EQ(spec.parallel.shape.stages, 4U);
  EXPECT_EQ(spec.parallel.shape.schedule, hccl::PipelineSchedule::gpipe_interleave);
  EXPECT_EQ(spec.framework, Framework::mindspore);
  EXPECT_TRUE(spec.hcom_parallel);
  EXPECT_THAT(refused("runtime-error", {{"pipeline_stages", "4"}}), HasSubstr("not stand_alone"));
  EXPECT_THAT(refused("runtime-error", {{"parallel_mode", "data_parallel"}, {"pipeline_stages", "4"}}),
              HasSubstr("not data_parallel"));
  EXPECT_THAT(
      refused("runtime-error",
              {{"parallel_mode", "auto_parallel"}, {"pipeline_stages", "4"}, {"search_mode", "dynamic_programming"}}),
      HasSubstr("recursive_programming"));
  RunSpec two;
  two.parallel.shape.stages = 2;
  EXPECT_THAT(
      test::refusal("option",
                    [&] {
                      static_cast<void>(applied({{"parallel_mode", "semi_auto_parallel"}, {"pipeline_stages", "4"}},
                                                two, {.file = true, .stages = true}));
                    }),
      HasSubstr("different things"));
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

TEST(ApplyContext, DevicesAndModes) {
  EXPECT_EQ(applied({{"parallel_mode", "data_parallel"}, {"device_num", "4"}}).npus, 4U);
  EXPECT_EQ(applied({}).npus, 1U);
  EXPECT_THAT(refused("value-error", {{"parallel_mode", "stand_alone"}, {"device_num", "4"}}), HasSubstr("one device"));
  EXPECT_THAT(refused("runtime-error", {{"parallel_mode", "semi_auto_parallel"}, {"device_num", "12"}}),
              HasSubstr("multiple of 8"));
  EXPECT_THAT(refused("runtime-error", {{"parallel_mode", "data_parallel"}, {"dataset_strategy", "full_batch"}}),
              HasSubstr("not data_parallel"));
  EXPECT_THAT(refused("unsupported", {{"parallel_mode", "semi_auto_parallel"}, {"dataset_strategy", "((1, 1),)"}}),
              HasSubstr("operator strategies"));
  const auto saved = applied({{"parallel_mode", "semi_auto_parallel"}, {"strategy_ckpt_save_file", "'a.json'"}});
  EXPECT_EQ(saved.strategy_files.save, "a.json");
  EXPECT_THAT(applied({{"parallel_mode", "data_parallel"}}).notes, Contains(HasSubstr("parameter_broadcast is False")));
  EXPECT_EQ(applied({{"parallel_mode", "semi_auto_parallel"}, {"gradient_fp32_sync", "False"}}).communication_type,
            DataType::fp16);
  EXPECT_EQ(applied({{"parallel_mode", "semi_auto_parallel"},
                     {"gradient_fp32_sync", "False"},
                     {"force_fp32_communication", "True"}})
                .communication_type,
            DataType::fp32);
}

}  // namespace
}  // namespace hcclsim::study
