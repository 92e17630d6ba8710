// Keys and arguments that files of users have and the shipped examples have not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "study/files/foreign/megatron/megatron.hpp"
#include "study/files/foreign/mindformers.hpp"

namespace hcclsim::study {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A configuration of a LLaMA of two layers, with lines for its sections.
std::string small_llama(const std::string& of_model, const std::string& of_parallel, const std::string& others = "") {
  return "model:\n  model_config:\n    type: LlamaConfig\n    num_layers: 4\n    hidden_size: 64\n    num_heads: 4\n" +
         of_model + "  arch:\n    type: LlamaForCausalLM\nparallel_config:\n  data_parallel: 4\n" + of_parallel +
         others;
}

/// What a file that is mapped is refused with, or "no error".
template <typename Map>
std::string refusal_or_none(const Map& map) {
  try {
    static_cast<void>(map());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "foreign");
    return error.what();
  }
  return "no error";
}

std::string mindformers_refusal(const std::string& text) {
  return refusal_or_none([&] { return map_mindformers_text(text, "a.yaml", {}); });
}

std::string option_of(const ForeignMapping& mapping, std::string_view option) {
  const auto found = std::ranges::find(mapping.options, option, &MappedOption::option);
  return found == mapping.options.end() ? "" : found->value;
}

TEST(MindformersDetails, WithoutUseParallelOneNpuTrains) {
  EXPECT_EQ(mindformers_refusal(small_llama("", "", "use_parallel: True\n")), "no error");
  EXPECT_EQ(mindformers_refusal(small_llama("", "", "use_parallel: False\n")), "no error");
  EXPECT_EQ(option_of(map_mindformers_text(small_llama("", "", "use_parallel: False\n"), "a.yaml", {}), "npus"), "1");
  EXPECT_EQ(mindformers_refusal("use_parallel: False\nmodel:\n  model_config:\n    type: LlamaConfig\n"), "no error");
}

TEST(MindformersDetails, LatentAttentionSaysWhatIsTurned) {
  const ForeignMapping mapping = map_mindformers_text(
      small_llama("    kv_lora_rank: 32\n    qk_rope_head_dim: 64\n    qk_nope_head_dim: 128\n    v_head_dim: 128\n",
                  ""),
      "a.yaml", {});
  EXPECT_EQ(option_of(mapping, "rotary-width"), "64");
  EXPECT_EQ(option_of(mapping, "head-width"), "128");
}

TEST(MindformersDetails, WordsThatAreNoSwitchAreRefused) {
  const auto expect_switch = [](const std::string& text, const std::string& key) {
    EXPECT_THAT(mindformers_refusal(text), HasSubstr(key)) << key;
    EXPECT_THAT(mindformers_refusal(text), HasSubstr("must be True or False")) << key;
  };
  for (const char* const key :
       {"mp_comm_recompute", "parallel_optimizer_comm_recompute", "recompute_slice_activation"}) {
    const std::string section = "recompute_config:\n  recompute: True\n  " + std::string(key);
    expect_switch(small_llama("", "", section + ": maybe\n"), std::string("a.yaml:13: recompute_config.") + key);
    EXPECT_EQ(mindformers_refusal(small_llama("", "", section + ": True\n")), "no error") << key;
  }
  expect_switch(small_llama("    use_flash_attention: 3\n", ""), "model.model_config.use_flash_attention is 3");
  expect_switch(small_llama("    qkv_concat: 3\n", ""), "model.model_config.qkv_concat is 3");
  expect_switch(small_llama("", "", "runner_wrapper:\n  use_clip_grad: x\n"), "runner_wrapper.use_clip_grad is 'x'");
  expect_switch(small_llama("", "", "use_parallel: 5\n"), "use_parallel is 5");
  expect_switch(small_llama("", "  optimizer_shard: 2\n"), "parallel_config.optimizer_shard is 2");
}

TEST(MindformersDetails, SizesAreOneOrMore) {
  EXPECT_THAT(mindformers_refusal("model: {model_config: {type: LlamaConfig, num_layers: -3}}\n"),
              HasSubstr("model.model_config.num_layers is -3, must be 1 or more"));
  EXPECT_THAT(mindformers_refusal(small_llama("", "  model_parallel: -2\n")), HasSubstr("is -2, must be 1 or more"));
}

// Also with a value that says that something is off.
TEST(MindformersDetails, UnknownKeysOfRanksAreRefused) {
  EXPECT_THAT(mindformers_refusal(small_llama("", "  model_paralel: 1\n")),
              HasSubstr("a.yaml:11: parallel_config.model_paralel 1: no option of run stands for it"));
  EXPECT_EQ(mindformers_refusal(small_llama("", "  seq_split_num: 1\n")), "no error");
}

TEST(MindformersDetails, FilesWithoutANetworkAreRefused) {
  EXPECT_THAT(mindformers_refusal("parallel_config:\n  data_parallel: 4\n"),
              HasSubstr("model: the file has no model.model_config: give --model and its sizes; --ignore-keys model"));
}

TEST(MindformersDetails, SizesThatAllNetworksOfAKindHaveAreTaken) {
  EXPECT_EQ(mindformers_refusal(small_llama("    kv_channels: 16\n    rotary_pct: 1.0\n    rotary_emb_base: 10000\n"
                                            "    emb_dropout_prob: 0.0\n    expert_num: 1\n",
                                            "")),
            "no error");
  EXPECT_THAT(mindformers_refusal(small_llama("    expert_num: 4\n", "")), HasSubstr("expert_num 4"));
  const ForeignMapping others = map_mindformers_text(
      small_llama("    kv_channels: 32\n    rotary_pct: 0.5\n    emb_dropout_prob: 0.1\n", ""), "a.yaml", {});
  EXPECT_EQ(option_of(others, "head-width"), "32");
  EXPECT_EQ(option_of(others, "rotary-width"), "16");
  EXPECT_EQ(option_of(others, "dropout"), "0.1");
}

TEST(MindformersDetails, NamesOfOptimizersMayBeInSmallLetters) {
  const ForeignMapping mapping =
      map_mindformers_text(small_llama("", "", "optimizer:\n  type: adamw\nrunner_wrapper:\n  sens: 1024\n"), "a", {});
  EXPECT_EQ(option_of(mapping, "optimizer"), "adamw");
}

/// Updates of mindformers are cast to the type of the parameters; states of MindSpore's own optimizers have that type.
TEST(MindformersDetails, OptimizersKeepNoSecondCopyOfTheParameters) {
  const auto types = [](const std::string& optimizer, const std::string& parameters) {
    const std::string of_model = parameters.empty() ? "" : "    param_init_type: " + parameters + "\n";
    const ForeignMapping mapping =
        map_mindformers_text(small_llama(of_model, "", "optimizer:\n  type: " + optimizer + "\n"), "a", {});
    return option_of(mapping, "master-weights") + "," + option_of(mapping, "optimizer-dtype");
  };
  for (const char* const optimizer : {"FP32StateAdamWeightDecay", "AdamW", "FusedAdamWeightDecay", "PmaAdamW"}) {
    EXPECT_EQ(types(optimizer, "float16"), "off,") << optimizer;
    EXPECT_EQ(types(optimizer, "bfloat16"), "off,") << optimizer;
    EXPECT_EQ(types(optimizer, "float32"), ",") << optimizer;
    EXPECT_EQ(types(optimizer, ""), ",") << optimizer;
  }
  EXPECT_EQ(types("AdamWeightDecay", "float16"), "off,fp16");
  EXPECT_EQ(types("Adam", "bfloat16"), "off,bf16");
}

TEST(MindformersDetails, KeysThatSayNothingOfAStepAreListed) {
  const std::string harmless =
      "    eod_token_id: 3\n    qkv_concat: True\n    num_block: 512\n    top_k: 3\n    max_new_tokens: 128\n"
      "    embedding_size: 64\n    auto_map: {AutoTokenizer: [a, null]}\n";
  EXPECT_EQ(mindformers_refusal(small_llama(harmless, "  mem_coeff: 0.1\n",
                                            "profiler_level: 1\nmem_coeff: 0.1\ntop_k: 3\nmax_new_tokens: 8\n")),
            "no error");
  EXPECT_THAT(mindformers_refusal(small_llama("    embedding_size: 32\n", "")), HasSubstr("embedding_size 32"));
}

/// What the framework does with the batch in data_parallel.
TEST(MindformersDetails, DataParallelReadsNoFullBatch) {
  for (const char* const mode : {"0", "data_parallel"}) {
    const std::string parallel = "parallel:\n  parallel_mode: " + std::string(mode) + "\n  full_batch: True\n";
    EXPECT_EQ(option_of(map_mindformers_text(small_llama("", "", parallel), "a", {}), "full-batch"), "") << mode;
  }
  EXPECT_EQ(option_of(map_mindformers_text(small_llama("", "", "parallel:\n  parallel_mode: 1\n  full_batch: True\n"),
                                           "a", {}),
                      "full-batch"),
            "True");
}

bool leaves_out(const ForeignMapping& mapping, std::string_view source) {
  return std::ranges::any_of(mapping.left_out, [&](const UnmappedKey& key) { return key.source.starts_with(source); });
}

TEST(MindformersDetails, KeysWithAnEffectAreNotCalledHarmless) {
  const auto softmax = [](const std::string& more) {
    return leaves_out(
        map_mindformers_text(small_llama("    softmax_compute_type: float32\n    compute_dtype: bfloat16\n" + more, ""),
                             "a", {}),
        "model.model_config.softmax_compute_type");
  };
  EXPECT_TRUE(softmax(""));
  EXPECT_TRUE(softmax("    use_flash_attention: False\n"));
  EXPECT_FALSE(softmax("    use_flash_attention: True\n"));
  const std::string experts = "moe_config:\n  expert_num: 4\n  routing_policy: TopkRouterV2\n  enable_sdrop: ";
  const ForeignMapping on = map_mindformers_text(small_llama("", "", experts + "True\n"), "a", {});
  EXPECT_TRUE(leaves_out(on, "moe_config.routing_policy TopkRouterV2"));
  EXPECT_TRUE(leaves_out(on, "moe_config.enable_sdrop True"));
  EXPECT_FALSE(
      leaves_out(map_mindformers_text(small_llama("", "", experts + "False\n"), "a", {}), "moe_config.enable_sdrop"));
}

TEST(MindformersDetails, PartsOfStagesTakeTurnsIfPipelineConfigSaysSo) {
  const std::string stages = "  pipeline_stage: 2\n  micro_batch_num: 4\n";
  const std::string turns =
      "parallel:\n  pipeline_config:\n    pipeline_interleave: True\n    pipeline_scheduler: 1f1b\n";
  EXPECT_EQ(
      option_of(map_mindformers_text(small_llama("    pp_interleave_num: 2\n", stages, turns), "a", {}), "chunks"),
      "2");
  EXPECT_EQ(option_of(map_mindformers_text(small_llama("    pp_interleave_num: 2\n", stages), "a", {}), "chunks"), "");
}

TEST(MindformersDetails, PositionsAreSharedByRingsOrByAllToAlls) {
  const auto kind = [](const std::string& how) {
    return option_of(
        map_mindformers_text(small_llama("", "  context_parallel: 2\n  context_parallel_algo: " + how + "\n"), "a", {}),
        "context-kind");
  };
  EXPECT_EQ(kind("colossalai_cp"), "ring");
  EXPECT_EQ(kind("ulysses_cp"), "ulysses");
  EXPECT_THAT(
      mindformers_refusal(small_llama("", "  context_parallel: 2\n  context_parallel_algo: hybrid_cp\n")),
      HasSubstr("context_parallel_algo hybrid_cp: positions are shared by rings (colossalai_cp) or by all-to-alls"));
}

TEST(MindformersDetails, ListsOfDatasetStrategyAreTuples) {
  const std::string parallel =
      "parallel:\n  full_batch: False\n  dataset_strategy: [[4, 1], [4, 1], [4, 1], [4, 1, 1, 1]]\n";
  EXPECT_EQ(option_of(map_mindformers_text(small_llama("", "", parallel), "a", {}), "dataset-strategy"),
            "((4, 1), (4, 1))");
  EXPECT_EQ(option_of(map_mindformers_text(small_llama("", "", parallel), "a", {}), "full-batch"), "");
  const std::string whole = "parallel:\n  full_batch: True\n  dataset_strategy: [[4, 1], [4, 1]]\n";
  EXPECT_EQ(option_of(map_mindformers_text(small_llama("", "", whole), "a", {}), "full-batch"), "True");
  EXPECT_EQ(option_of(map_mindformers_text(small_llama("", "", whole), "a", {}), "dataset-strategy"), "");
  const std::string one = "parallel:\n  dataset_strategy: [[4, 1]]\n";
  EXPECT_EQ(option_of(map_mindformers_text(small_llama("", "", one), "a", {}), "dataset-strategy"), "((4, 1), (4, 1))");
}

TEST(MindformersDetails, WrongNumbersAreQuotedOnce) {
  EXPECT_THAT(mindformers_refusal(small_llama("", "  model_parallel: two\n")),
              HasSubstr("parallel_config.model_parallel is 'two', must be a whole number"));
  EXPECT_THAT(mindformers_refusal(small_llama("", "  model_parallel: [2]\n")),
              HasSubstr("parallel_config.model_parallel is [2], must be a whole number"));
}

std::string megatron_script(const std::string& program, const std::string& more) {
  return "torchrun --nproc_per_node 8 " + program + " --hidden-size 64 --num-attention-heads 4 " + more + "\n";
}

std::string megatron_refusal(const std::string& text) {
  return refusal_or_none([&] { return map_megatron_text(text, "a.sh", {}); });
}

TEST(MegatronDetails, ArgumentsMayBeJoinedWithTheirValues) {
  const ForeignMapping mapping =
      map_megatron_text(megatron_script("pretrain_gpt.py", "--num-layers=2 --seq-length=128"), "a.sh", {});
  EXPECT_EQ(option_of(mapping, "layers"), "2");
  EXPECT_EQ(option_of(mapping, "sequence"), "128");
}

/// A tokenizer is known by its kind, or by the name of a network in its path; of another one the tokens must be given.
TEST(MegatronDetails, TokensOfATokenizer) {
  const std::string start = "--num-layers 2 --tensor-model-parallel-size 8 ";
  const auto vocabulary = [&](const std::string& tokenizer, const std::vector<std::string>& ignored = {}) {
    return option_of(map_megatron_text(megatron_script("pretrain_gpt.py", start + tokenizer), "a.sh", ignored),
                     "vocabulary");
  };
  EXPECT_EQ(vocabulary("--tokenizer-type PretrainedFromHF --tokenizer-name-or-path /data/Llama-3.1-8B/"), "129024");
  EXPECT_EQ(vocabulary("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Meta-Llama-3-8B"), "129024");
  EXPECT_EQ(vocabulary("--tokenizer-type PretrainedFromHF --tokenizer-name-or-path ${D}/llama-2-7b-hf"), "32768");
  const std::string script = megatron_script(
      "pretrain_gpt.py", "--num-layers 2 --tokenizer-type PretrainedFromHF --tokenizer-name-or-path $TOKENIZER");
  const std::string refused = megatron_refusal(script);
  EXPECT_THAT(refused,
              HasSubstr("a.sh:1: --vocab-size not given: how many tokens PretrainedFromHF has, its files alone "
                        "tell; write --vocab-size into the script, or give --vocabulary beside; --ignore-keys "
                        "vocab-size leaves it out"));
  // Left out: the tokens of the published network, filled up to a multiple of 128 · 8.
  EXPECT_EQ(vocabulary("--tokenizer-type PretrainedFromHF", {"vocab-size"}), "51200");
}

TEST(MegatronDetails, PackedDocumentsAreSaidToBeLeftOut) {
  const ForeignMapping mapping = map_megatron_text(
      megatron_script("pretrain_gpt.py", "--num-layers 2 --reset-position-ids --reset-attention-mask"), "a.sh", {});
  EXPECT_TRUE(leaves_out(mapping, "--reset-position-ids"));
  EXPECT_TRUE(leaves_out(mapping, "--reset-attention-mask"));
}

TEST(MegatronDetails, ProgramsWithOtherLayersAreRefused) {
  for (const char* const program : {"pretrain_t5.py", "pretrain_vision_classify.py", "pretrain_mamba.py"}) {
    EXPECT_THAT(megatron_refusal(megatron_script(program, "--num-layers 2")),
                HasSubstr(std::string(program) + ": no network of run has its layers"));
  }
  for (const char* const program : {"pretrain_llama.py", "examples/posttrain_gpt.py", "train.py"}) {
    EXPECT_THAT(megatron_refusal(megatron_script(program, "--num-layers 2")), Not(HasSubstr("no network of run")));
  }
}

TEST(MegatronDetails, PositionsAreSharedByRingsOrByAllToAlls) {
  const auto kind = [](const std::string& how) {
    return option_of(
        map_megatron_text(megatron_script("pretrain_gpt.py", "--num-layers 2 --context-parallel-size 2 " + how), "a.sh",
                          {}),
        "context-kind");
  };
  EXPECT_EQ(kind(""), "ring");
  EXPECT_EQ(kind("--cp-comm-type a2a"), "ulysses");
  EXPECT_EQ(kind("--context-parallel-algo megatron_cp_algo"), "ring");
  EXPECT_EQ(kind("--context-parallel-algo ulysses_cp_algo"), "ulysses");
  for (const char* const how :
       {"--context-parallel-algo hybrid_cp_algo", "--context-parallel-algo kvallgather_cp_algo"}) {
    const ForeignMapping mapping = map_megatron_text(
        megatron_script("pretrain_gpt.py", std::string("--num-layers 2 --context-parallel-size 2 ") + how), "a.sh", {});
    EXPECT_EQ(option_of(mapping, "context-kind"), "ring");
    EXPECT_TRUE(leaves_out(mapping, how));
  }
  for (const char* const how : {"--cp-comm-type allgather", "--context-parallel-algo mamba_cp_algo"}) {
    EXPECT_THAT(megatron_refusal(
                    megatron_script("pretrain_gpt.py", std::string("--num-layers 2 --context-parallel-size 2 ") + how)),
                HasSubstr(std::string(how) + ": positions are shared by rings"));
  }
}

}  // namespace
}  // namespace hcclsim::study
