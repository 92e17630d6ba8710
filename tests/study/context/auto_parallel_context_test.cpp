#include "study/context/auto_parallel_context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void set(AutoParallelContext& context, const char* key, const char* value) {
  const auto literal = parse_literal(value);
  ASSERT_TRUE(literal.has_value()) << value;
  context.set(key, *literal);
}

struct Refused {
  const char* key;
  const char* value;
  const char* kind;
};

class ContextRefusals : public testing::TestWithParam<Refused> {};

TEST_P(ContextRefusals, KeepTheOldValue) {
  AutoParallelContext context;
  const bool exists = std::string(GetParam().key) != "no_such";
  const Literal before = exists ? context.get(GetParam().key) : Literal{};
  EXPECT_THAT(test::refusal(GetParam().kind, [&] { set(context, GetParam().key, GetParam().value); }),
              testing::Not(IsEmpty()))
      << GetParam().key << " " << GetParam().value;
  if (exists) {
    EXPECT_EQ(context.get(GetParam().key), before);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, ContextRefusals,
    testing::Values(
        Refused{"no_such", "1", "value-error"}, Refused{"device_num", "0", "value-error"},
        Refused{"device_num", "4097", "value-error"}, Refused{"device_num", "True", "type-error"},
        Refused{"global_rank", "-1", "value-error"}, Refused{"global_rank", "4096", "value-error"},
        Refused{"gradients_mean", "1", "type-error"}, Refused{"gradient_fp32_sync", "'on'", "type-error"},
        Refused{"loss_repeated_mean", "0", "type-error"}, Refused{"parallel_mode", "'semi'", "value-error"},
        Refused{"parallel_mode", "1", "type-error"}, Refused{"search_mode", "'best'", "value-error"},
        Refused{"auto_parallel_search_mode", "'best'", "value-error"},
        Refused{"parameter_broadcast", "1", "type-error"}, Refused{"strategy_ckpt_load_file", "1", "type-error"},
        Refused{"strategy_ckpt_config", "1", "type-error"},
        Refused{"strategy_ckpt_config", "{'file': 'a'}", "value-error"},
        Refused{"strategy_ckpt_config", "{'load_file': 1}", "type-error"},
        Refused{"strategy_ckpt_config", "{'only_trainable_params': 1}", "type-error"},
        Refused{"full_batch", "1", "type-error"}, Refused{"dataset_strategy", "'half'", "value-error"},
        Refused{"dataset_strategy", "1", "type-error"}, Refused{"dataset_strategy", "(1, 2)", "type-error"},
        Refused{"dataset_strategy", "(('a',),)", "type-error"}, Refused{"enable_parallel_optimizer", "1", "type-error"},
        Refused{"parallel_optimizer_config", "{'size': 1}", "value-error"},
        Refused{"parallel_optimizer_config", "{'gradient_accumulation_shard': 1}", "type-error"},
        Refused{"parallel_optimizer_config", "{'parallel_optimizer_threshold': -1}", "value-error"},
        Refused{"parallel_optimizer_config", "{'parallel_optimizer_threshold': 'a'}", "type-error"},
        Refused{"parallel_optimizer_config", "{'optimizer_weight_shard_size': 0}", "value-error"},
        Refused{"parallel_optimizer_config", "{'optimizer_weight_shard_size': -1}", "value-error"},
        Refused{"enable_alltoall", "1", "type-error"}, Refused{"force_fp32_communication", "1", "type-error"},
        Refused{"all_reduce_fusion_config", "[]", "value-error"},
        Refused{"all_reduce_fusion_config", "['a']", "type-error"},
        Refused{"all_reduce_fusion_config", "[True]", "type-error"},
        Refused{"all_reduce_fusion_config", "[3, 3]", "value-error"},
        Refused{"all_reduce_fusion_config", "[5, 3]", "value-error"},
        Refused{"all_reduce_fusion_config", "85", "type-error"}, Refused{"comm_fusion", "1", "type-error"},
        Refused{"comm_fusion", "{'reduce': {}}", "key-error"}, Refused{"comm_fusion", "{'openstate': 1}", "type-error"},
        Refused{"comm_fusion", "{'allreduce': 1}", "type-error"},
        Refused{"comm_fusion", "{'allreduce': {'mode': 'auto'}}", "key-error"},
        Refused{"comm_fusion", "{'allreduce': {'config': None}}", "key-error"},
        Refused{"comm_fusion", "{'allgather': {'mode': 'index', 'config': [1]}}", "key-error"},
        Refused{"comm_fusion", "{'allreduce': {'mode': 'size', 'config': -1}}", "value-error"},
        Refused{"comm_fusion", "{'allreduce': {'mode': 'size', 'config': 0}}", "value-error"},
        Refused{"comm_fusion", "{'allreduce': {'mode': 'index', 'config': [2, 1]}}", "value-error"},
        Refused{"pipeline_stages", "0", "value-error"}, Refused{"pipeline_stages", "True", "type-error"},
        Refused{"pipeline_stages", "'2'", "type-error"}, Refused{"pipeline_config", "1", "type-error"},
        Refused{"pipeline_config", "{'schedule': 1}", "value-error"},
        Refused{"pipeline_config", "{'pipeline_interleave': 1}", "type-error"},
        Refused{"pipeline_config", "{'pipeline_interleave': True, 'pipeline_scheduler': '2f2b'}", "value-error"},
        Refused{"pipeline_config", "{'pipeline_interleave': False, 'pipeline_scheduler': 'gpipe'}", "value-error"},
        Refused{"pipeline_result_broadcast", "1", "type-error"}, Refused{"grad_accumulation_step", "2", "value-error"},
        Refused{"communi_parallel_mode", "'some'", "value-error"}));

TEST(Context, DefaultsOfTheDocuments) {
  const AutoParallelContext context;
  EXPECT_EQ(context.text("parallel_mode"), "stand_alone");
  EXPECT_FALSE(context.flag("gradients_mean"));
  EXPECT_TRUE(context.flag("gradient_fp32_sync"));
  EXPECT_TRUE(context.flag("loss_repeated_mean"));
  EXPECT_EQ(context.integer("pipeline_stages"), 1);
  EXPECT_EQ(context.integer("device_num"), std::nullopt);
  EXPECT_EQ(to_string(context.get("dataset_strategy")), "'data_parallel'");
  EXPECT_EQ(context.get("parallel_optimizer_config").find("parallel_optimizer_threshold")->integer, 64);
  EXPECT_EQ(test::refusal("value-error", [&] { static_cast<void>(context.get("no_such")); }).substr(0, 9), "set_auto_");
}

TEST(Context, SetGetAndReset) {
  AutoParallelContext context;
  set(context, "pipeline_stages", "4");
  set(context, "parallel_optimizer_config", "{'gradient_accumulation_shard': True}");
  EXPECT_EQ(context.integer("pipeline_stages"), 4);
  EXPECT_EQ(to_string(context.get("parallel_optimizer_config")),
            "{'gradient_accumulation_shard': True, 'parallel_optimizer_threshold': 64}");
  set(context, "pipeline_stages", "None");  // None lets everything be
  EXPECT_EQ(context.integer("pipeline_stages"), 4);
  context.reset();
  EXPECT_EQ(context.integer("pipeline_stages"), 1);
  EXPECT_FALSE(context.is_set("pipeline_stages"));
}

TEST(Context, DeprecatedOptionsWarn) {
  AutoParallelContext context;
  set(context, "auto_parallel_search_mode", "'dynamic_programming'");
  set(context, "full_batch", "True");
  EXPECT_EQ(context.text("search_mode"), "dynamic_programming");
  EXPECT_EQ(context.text("dataset_strategy"), "full_batch");
  EXPECT_THAT(context.warnings(), ElementsAre(HasSubstr("use search_mode"), HasSubstr("use dataset_strategy")));
}

TEST(Context, ModesThatNeedGraphMode) {
  AutoParallelContext context;
  context.graph_mode = false;
  EXPECT_THAT(test::refusal("value-error", [&] { set(context, "parallel_mode", "'semi_auto_parallel'"); }),
              HasSubstr("needs graph mode"));
  EXPECT_THAT(test::refusal("value-error", [&] { set(context, "dataset_strategy", "((1, 1),)"); }),
              HasSubstr("needs graph mode"));
  set(context, "parallel_mode", "'data_parallel'");
}

TEST(Context, AsMindSpore23) {
  AutoParallelContext context(true);
  set(context, "comm_fusion", "{'allreduce': {'mode': 'size', 'config': 0}}");
  EXPECT_THAT(test::refusal("key-error", [&] { set(context, "pipeline_config", "{'pipeline_interleave': True}"); }),
              HasSubstr("needs both"));
}

TEST(Literals, AreReadAsPythonHasThem) {
  const auto again = [](const char* text) {
    const auto literal = parse_literal(text);
    return literal.has_value() ? to_string(*literal) : "none";
  };
  EXPECT_EQ(again("[1, -2, 3,]"), "[1, -2, 3]");
  EXPECT_EQ(again("(1,)"), "(1,)");
  EXPECT_EQ(again("(1)"), "1");
  EXPECT_EQ(again("((1, 1, 4, 1), (1,))"), "((1, 1, 4, 1), (1,))");
  EXPECT_EQ(again("{'a': {\"b\": None}, # comment\n 'c': 1.5}"), "{'a': {'b': None}, 'c': 1.5}");
  EXPECT_EQ(again("True"), "True");
  EXPECT_EQ(again("on"), "True");
  EXPECT_EQ(again("semi_auto_parallel"), "'semi_auto_parallel'");
  for (const char* wrong : {"[1, 2", "{'a' 1}", "(1 2)", "'open", "{1: 2}", ""})
    EXPECT_EQ(again(wrong), "none") << wrong;
  EXPECT_EQ(again(std::string(100, '[').c_str()), "none");
}

}  // namespace
}  // namespace hcclsim::study
