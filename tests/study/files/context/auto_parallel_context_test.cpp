#include "study/files/context/auto_parallel_context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
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
        Refused{"dataset_strategy", "[[1]]", "type-error"}, Refused{"dataset_strategy", "((1,), [1])", "type-error"},
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
        Refused{"pipeline_result_broadcast", "1", "type-error"},
        Refused{"pipeline_result_broadcast", "None", "type-error"}, Refused{"pipeline_segments", "0", "value-error"},
        Refused{"pipeline_segments", "True", "type-error"}, Refused{"optimizer_weight_shard_size", "'2'", "type-error"},
        Refused{"optimizer_weight_shard_size", "4294967296", "value-error"},
        Refused{"optimizer_weight_shard_aggregated_save", "1", "type-error"},
        Refused{"sharding_propagation", "1", "type-error"}, Refused{"parallel_optimizer_config", "1", "type-error"},
        // R1.3: None passes the type filter of declared types, and what the setter then says of it.
        Refused{"device_num", "None", "type-error"}, Refused{"global_rank", "None", "type-error"},
        Refused{"parallel_mode", "None", "value-error"}, Refused{"search_mode", "None", "value-error"},
        Refused{"communi_parallel_mode", "None", "value-error"}, Refused{"comm_fusion", "None", "type-error"},
        Refused{"all_reduce_fusion_config", "None", "type-error"},
        Refused{"strategy_ckpt_config", "None", "type-error"}, Refused{"strategy_ckpt_load_file", "None", "type-error"},
        Refused{"group_ckpt_save_file", "None", "type-error"}, Refused{"pipeline_stages", "None", "type-error"},
        Refused{"pipeline_config", "None", "type-error"}, Refused{"parallel_optimizer_config", "None", "type-error"},
        Refused{"dataset_strategy", "None", "type-error"}, Refused{"grad_accumulation_step", "None", "type-error"},
        Refused{"device_num", "18446744073709551616", "value-error"},
        Refused{"grad_accumulation_step", "2", "value-error"},
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
  EXPECT_THAT(test::refusal("value-error", [&] { static_cast<void>(context.get("paralel_mode")); }),
              HasSubstr("did you mean parallel_mode?"));
}

TEST(Context, SetGetAndReset) {
  AutoParallelContext context;
  set(context, "pipeline_stages", "4");
  set(context, "parallel_optimizer_config", "{'gradient_accumulation_shard': True}");
  EXPECT_EQ(context.integer("pipeline_stages"), 4);
  EXPECT_EQ(to_string(context.get("parallel_optimizer_config")),
            "{'gradient_accumulation_shard': True, 'parallel_optimizer_threshold': 64, "
            "'optimizer_weight_shard_size': -1}");
  context.reset();
  EXPECT_EQ(context.integer("pipeline_stages"), 1);
  EXPECT_FALSE(context.is_set("pipeline_stages"));
}

TEST(Context, DeprecatedOptionsWarn) {
  AutoParallelContext context;
  set(context, "auto_parallel_search_mode", "'dynamic_programming'");
  set(context, "full_batch", "True");
  EXPECT_EQ(context.text("search_mode"), "dynamic_programming");
  EXPECT_EQ(context.text("auto_parallel_search_mode"), "dynamic_programming");
  EXPECT_EQ(context.text("dataset_strategy"), "full_batch");
  EXPECT_TRUE(context.flag("full_batch"));
  EXPECT_THAT(context.warnings(), ElementsAre(HasSubstr("use search_mode"), HasSubstr("no longer recommended"),
                                              HasSubstr("use dataset_strategy")));
  set(context, "sharding_propagation", "True");
  EXPECT_EQ(context.text("search_mode"), "sharding_propagation");
  EXPECT_THAT(context.warnings().back(), HasSubstr("sharding_propagation is deprecated"));
  set(context, "sharding_propagation", "False");
  EXPECT_EQ(context.text("search_mode"), "sharding_propagation");
}

std::string fusion_of(const AutoParallelContext& context) { return to_string(context.get("comm_fusion")); }

/// F2.6: keys of a later dict join those of earlier ones, in order.
TEST(Context, DictsChangeTheirOwnKeysOnly) {
  AutoParallelContext context;
  set(context, "comm_fusion", "{'allreduce': {'mode': 'size', 'config': 8}}");
  set(context, "comm_fusion", "{'allgather': {'mode': 'size', 'config': 16}}");
  EXPECT_EQ(fusion_of(context),
            "{'openstate': True, 'allreduce': {'mode': 'size', 'config': 8}, 'allgather': {'mode': 'size', 'config': "
            "16}, 'reducescatter': {'mode': 'auto', 'config': None}}");
  set(context, "parallel_optimizer_config", "{'parallel_optimizer_threshold': 0}");
  set(context, "parallel_optimizer_config", "{'optimizer_weight_shard_size': 4}");
  set(context, "optimizer_weight_shard_size", "8");
  EXPECT_EQ(to_string(context.get("parallel_optimizer_config")),
            "{'gradient_accumulation_shard': False, 'parallel_optimizer_threshold': 0, "
            "'optimizer_weight_shard_size': 8}");
  set(context, "strategy_ckpt_config", "{'save_file': 'a'}");
  set(context, "strategy_ckpt_load_file", "b");
  EXPECT_EQ(to_string(context.get("strategy_ckpt_config")),
            "{'load_file': 'b', 'save_file': 'a', 'only_trainable_params': True}");
  set(context, "pipeline_config", "{'pipeline_interleave': True}");
  set(context, "pipeline_config", "{'pipeline_scheduler': 'gpipe'}");
  EXPECT_EQ(to_string(context.get("pipeline_config")), "{'pipeline_interleave': True, 'pipeline_scheduler': 'gpipe'}");
  EXPECT_THAT(test::refusal("value-error", [&] { set(context, "pipeline_config", "{'pipeline_interleave': False}"); }),
              HasSubstr("gpipe"));
  EXPECT_THAT(test::refusal("key-error", [&] { set(context, "comm_fusion", "{'allreduse': {}}"); }),
              HasSubstr("did you mean allreduce?"));
}

/// F2.7 and F2.6: closed until openstate is True again, which it is where a later dict does not say.
TEST(Context, OpenstateOfFusion) {
  AutoParallelContext context;
  const auto open = [](const AutoParallelContext& of) { return of.get("comm_fusion").find("openstate")->boolean; };
  set(context, "comm_fusion", "{'openstate': False}");
  EXPECT_FALSE(open(context));
  set(context, "comm_fusion", "{'openstate': True}");
  EXPECT_TRUE(open(context));
  set(context, "comm_fusion", "{'openstate': False, 'allgather': {'mode': 'size', 'config': 8}}");
  EXPECT_FALSE(open(context));
  EXPECT_EQ(context.fusion_size("allgather"), 8);
  set(context, "comm_fusion", "{'allreduce': {'mode': 'auto', 'config': None}}");
  EXPECT_TRUE(open(context));
  EXPECT_EQ(context.fusion_size("allreduce"), 64);
  EXPECT_EQ(context.fusion_size("reducescatter"), std::nullopt);

  // MindSpore 2.3 never opens again, and does not look at what is closed, but for what came before.
  AutoParallelContext compat(true);
  set(compat, "comm_fusion", "{'allgather': {'mode': 'size', 'config': 8}, 'openstate': False, 'allreduce': 7}");
  EXPECT_FALSE(open(compat));
  EXPECT_EQ(compat.fusion_size("allgather"), 8);
  EXPECT_FALSE(compat.fusion_size("allreduce").has_value());
  set(compat, "comm_fusion", "{'openstate': True, 'reducescatter': {'mode': 'size', 'config': 8}}");
  EXPECT_FALSE(open(compat));
  EXPECT_FALSE(compat.fusion_size("reducescatter").has_value());
  compat.reset();
  EXPECT_TRUE(open(compat));
}

/// F2.11: two names of one entry; F2.9: one mode for all kinds.
TEST(Context, IndexIsOneEntry) {
  AutoParallelContext context;
  set(context, "all_reduce_fusion_config", "[1, 3]");
  EXPECT_EQ(to_string(*context.get("comm_fusion").find("allreduce")), "{'mode': 'index', 'config': [1, 3]}");
  set(context, "comm_fusion", "{'allreduce': {'mode': 'index', 'config': [2]}}");
  EXPECT_EQ(to_string(context.get("all_reduce_fusion_config")), "[2]");
  set(context, "comm_fusion", "{'allreduce': {'mode': 'size', 'config': 4}}");
  EXPECT_EQ(to_string(context.get("all_reduce_fusion_config")), "[2]");
  EXPECT_EQ(context.fusion_size("allreduce"), 4);
  EXPECT_EQ(context.shared_fusion_mode(), "size");
  set(context, "all_reduce_fusion_config", "[85, 160, 99999999999999999999]");  // F2.15: of any size
  EXPECT_EQ(context.fusion_size("allreduce"), 4);
  EXPECT_EQ(context.shared_fusion_mode(), "index");
  EXPECT_EQ(to_string(context.get("all_reduce_fusion_config")), "[85, 160, 99999999999999999999]");
  EXPECT_THAT(
      test::refusal("value-error",
                    [&] { set(context, "all_reduce_fusion_config", "[99999999999999999999, 99999999999999999998]"); }),
      HasSubstr("must ascend"));
}

/// R1.4: MindSpore 2.3 forgets two options to forget.
TEST(Context, ResetAndItsQuirk) {
  for (const bool compat : {false, true}) {
    AutoParallelContext context(compat);
    set(context, "group_ckpt_save_file", "groups");
    set(context, "pipeline_result_broadcast", "True");
    set(context, "comm_fusion", "{'openstate': False}");
    context.reset();
    EXPECT_EQ(context.text("group_ckpt_save_file"), compat ? "groups" : "");
    EXPECT_EQ(context.flag("pipeline_result_broadcast"), compat);
    EXPECT_FALSE(context.is_set("comm_fusion"));
    EXPECT_EQ(context.keys().size(), compat ? 2U : 0U);
  }
}

/// R1.3: what is only stored as a bool is False.
TEST(Context, NoneOfABool) {
  AutoParallelContext context;
  set(context, "gradient_fp32_sync", "None");
  EXPECT_FALSE(context.flag("gradient_fp32_sync"));
  EXPECT_TRUE(context.is_set("gradient_fp32_sync"));
}

TEST(Context, ShardSizesThatAreIgnored) {
  AutoParallelContext context;
  for (const char* const size : {"1", "0", "-3"}) {
    set(context, "optimizer_weight_shard_size", size);
    EXPECT_EQ(context.integer("optimizer_weight_shard_size"), -1);
  }
  EXPECT_EQ(context.warnings().size(), 3U);
  set(context, "parallel_optimizer_config", "{'optimizer_weight_shard_size': 1}");
  EXPECT_THAT(context.warnings().back(), HasSubstr("optimizer_weight_shard_size 1 is ignored"));
  set(context, "optimizer_weight_shard_size", "2");
  EXPECT_EQ(context.integer("optimizer_weight_shard_size"), 2);
}

TEST(Context, Contradictions) {
  AutoParallelContext file;
  set(file, "comm_fusion", "{'allreduce': {'mode': 'size', 'config': 8}}");
  AutoParallelContext both = file;
  set(both, "comm_fusion", "{'allgather': {'mode': 'size', 'config': 8}}");
  EXPECT_EQ(both.contradiction(file), "");
  set(both, "all_reduce_fusion_config", "[3]");
  EXPECT_EQ(both.contradiction(file), "");  // a list stands beside a size
  set(both, "comm_fusion", "{'allreduce': {'mode': 'size', 'config': 16}}");
  EXPECT_EQ(both.contradiction(file), "comm_fusion.allreduce");
  AutoParallelContext search;
  set(search, "search_mode", "recursive_programming");
  AutoParallelContext other = search;
  set(other, "auto_parallel_search_mode", "sharding_propagation");
  EXPECT_EQ(other.contradiction(search), "search_mode");
}

TEST(Context, ModesThatNeedGraphMode) {
  AutoParallelContext context;
  context.set_graph_mode(false);
  EXPECT_THAT(test::refusal("value-error", [&] { set(context, "parallel_mode", "'semi_auto_parallel'"); }),
              HasSubstr("needs graph mode"));
  EXPECT_THAT(test::refusal("value-error", [&] { set(context, "dataset_strategy", "((1, 1),)"); }),
              HasSubstr("needs graph mode"));
  set(context, "parallel_mode", "'data_parallel'");

  // In the other order, too.
  AutoParallelContext graph;
  set(graph, "parallel_mode", "semi_auto_parallel");
  EXPECT_THAT(test::refusal("value-error", [&] { graph.set_graph_mode(false); }), HasSubstr("semi_auto_parallel"));
  EXPECT_TRUE(graph.graph_mode());
  set(graph, "parallel_mode", "auto_parallel");
  set(graph, "dataset_strategy", "((1, 1),)");
  EXPECT_THAT(test::refusal("value-error", [&] { graph.set_graph_mode(false); }), HasSubstr("dataset_strategy"));
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
  EXPECT_EQ(again("[0x1F, 0o17, 0b101, 1_000, 0x_ff, -0x10]"), "[31, 15, 5, 1000, 255, -16]");
  EXPECT_EQ(again("[18446744073709551616, -9223372036854775809]"), "[18446744073709551616, -9223372036854775809]");
  EXPECT_EQ(again("[r'a\\n', 'a' \"b\"\n'c', '''x\ny''', u'z']"), "['a\\\\n', 'abc', 'x\\ny', 'z']");
  EXPECT_EQ(again("['\\x41\\u00e9\\t\\101', \"it's\"]"), "['A\u00e9\tA', \"it's\"]");
  EXPECT_EQ(again("dict(mode='size', config=dict())"), "{'mode': 'size', 'config': {}}");
  EXPECT_EQ(again("[dict(mode='size', config=32, )]"), "[{'mode': 'size', 'config': 32}]");
  EXPECT_EQ(again("{'a': 1, 'b': 2, 'a': 3}"), "{'a': 3, 'b': 2}");
  for (const char* wrong : {"[012]", "[1__0]", "[1_]", "[0x]", "[0b2]", "[f'a']", "[b'a']", "[dict({})]",
                            "[dict(a=1, a=2)]", "[1 + 2]", "[int('1')]", "['\\xZZ']", "['open]", "[true]", "[null]"}) {
    EXPECT_EQ(again(wrong), "none") << wrong;
  }
}

}  // namespace
}  // namespace hcclsim::study
