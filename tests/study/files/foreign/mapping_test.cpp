// Files of other programs as options of run.

#include "study/files/foreign/mapping.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "study/files/foreign/megatron/megatron.hpp"
#include "study/files/foreign/mindformers.hpp"

namespace hcclsim::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string data(const std::string& file) { return std::string(HCCLSIM_TEST_DATA "/foreign/") + file; }

/// "" without the option.
std::string value_of(const ForeignMapping& mapping, std::string_view option) {
  const auto found = std::ranges::find(mapping.options, option, &MappedOption::option);
  return found == mapping.options.end() ? "" : found->value;
}

/// Each option with its value; "": it is not there.
void expect_options(const ForeignMapping& mapping,
                    const std::vector<std::pair<std::string_view, std::string_view>>& options) {
  for (const auto& [option, value] : options) EXPECT_EQ(value_of(mapping, option), value) << option;
}

template <typename Map>
std::string message_of(Map map) {
  try {
    static_cast<void>(map());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "foreign");
    return error.what();
  }
  return "no error";
}

TEST(Mindformers, ModelAndRanksBecomeOptions) {
  const ForeignMapping mapping = map_mindformers(data("llama2_70b.yaml"), {});
  expect_options(mapping,
                 {{"model", "llama"},
                  {"layers", "80"},
                  {"kv-heads", "8"},
                  // (1.3 + 0.01) · 4 · 8192 = 42926, two thirds are 28617, up to a multiple of 256 28672: as published.
                  {"feed-forward", "28672"},
                  {"npus", "64"},
                  {"model-parallel", "4"},
                  {"stages", "8"},
                  {"stage-layers", "9,10,10,10,10,10,10,11"},
                  {"batch", "16"},
                  {"micro-batches", "16"},
                  {"recompute", "layers:4,3,2,2,1,1,0,0"},
                  {"enable-parallel-optimizer", "True"},
                  {"compute-dtype", "bf16"}});
  EXPECT_THAT(mapping.options.front().place, HasSubstr("llama2_70b.yaml:22"));
}

TEST(Mindformers, FeedForwardOfLlamaIsRoundedAsItsLayersRoundIt) {
  EXPECT_EQ(value_of(map_mindformers(data("llama2_7b.yaml"), {}), "feed-forward"), "11008");
}

TEST(Mindformers, AccumulatesWithoutAPipeline) {
  const ForeignMapping mapping = map_mindformers(data("llama2_7b.yaml"), {});
  expect_options(mapping, {{"batch", "4"}, {"accumulate", "4"}, {"micro-batches", ""}});
  const auto has = [](const std::vector<UnmappedKey>& keys, std::string_view source) {
    return std::ranges::any_of(keys, [&](const UnmappedKey& key) { return key.source.starts_with(source); });
  };
  EXPECT_TRUE(has(mapping.without_effect, "auto_trans_ckpt"));
  EXPECT_TRUE(has(mapping.left_out, "context.max_device_memory"));
}

TEST(Mindformers, ExpertsMakeMixtralOfLlama) {
  const ForeignMapping mapping = map_mindformers(data("mixtral.yaml"), {});
  expect_options(
      mapping,
      {{"model", "mixtral"}, {"experts", "8"}, {"moe-top-k", "2"}, {"moe-capacity", "1.25"}, {"expert-parallel", "4"}});
}

const std::string small_yaml =
    "model: {model_config: {type: LlamaConfig, num_layers: 2, hidden_size: 64, num_heads: 4EXTRA}}\n"
    "parallel_config: {data_parallel: 8}\n";

std::string with(std::string extra) {
  std::string text = small_yaml;
  return text.replace(text.find("EXTRA"), 5, extra);
}

std::string refusal_of(const std::string& text, const std::vector<std::string>& ignored = {}) {
  return message_of([&] { return map_mindformers_text(text, "llm.yaml", ignored); });
}

TEST(Mindformers, WhatHasNoCounterpartIsRefusedByName) {
  EXPECT_EQ(refusal_of(with("")), "no error");
  EXPECT_THAT(refusal_of(with(", pre_seq_len: 2")), HasSubstr("llm.yaml:1: model.model_config.pre_seq_len 2"));
  EXPECT_EQ(refusal_of(with(", pre_seq_len: 2"), {"pre_seq_len"}), "no error");
  EXPECT_EQ(refusal_of(with(", fine_grain_interleave: 2")), "no error");
  EXPECT_THAT(refusal_of(with(", some_new_key: 1")), HasSubstr("some_new_key 1: no option of run stands for it"));
  EXPECT_THAT(refusal_of(with("") + "new_section: 1\n"), HasSubstr("llm.yaml:3: new_section"));
  EXPECT_THAT(refusal_of(with("") + "optimizer: {type: Muon}\n"), HasSubstr("optimizer.type Muon"));
  EXPECT_EQ(refusal_of(with(", some_new_key: False")), "no error");
  EXPECT_THAT(refusal_of(with(", some_new_key: 1, other_new_key: 2")),
              HasSubstr("2 keys have no counterpart; --ignore-keys some_new_key,other_new_key leaves them out"));
  EXPECT_THAT(refusal_of("model: {model_config: {offset: 0}}\nparallel_config: {data_parallel: 8}\n"),
              HasSubstr("give --model and its sizes; --ignore-keys model leaves it out"));
  EXPECT_THAT(refusal_of(with(""), {"nothing"}), HasSubstr("--ignore-keys nothing"));
  EXPECT_THAT(refusal_of("model: {model_config: {type: T5Config}}\n"), HasSubstr("model type T5Config"));
}

ForeignMapping yaml_mapping(const std::string& text) { return map_mindformers_text(text, "llm.yaml", {}); }

TEST(Mindformers, AppliedNetworksHaveNoOptionsOfTraining) {
  const ForeignMapping mapping = yaml_mapping(with(", use_past: True") +
                                              "run_mode: predict\noptimizer: {type: adamw}\n"
                                              "recompute_config: {recompute: True}\n");
  expect_options(mapping, {{"forward-only", "true"}});
  EXPECT_EQ(value_of(mapping, "optimizer"), "");
  EXPECT_EQ(value_of(mapping, "recompute"), "");
}

TEST(Mindformers, KindsOfNetworks) {
  const auto options = [](const std::string& config) {
    return yaml_mapping("model: {model_config: {num_layers: 2, hidden_size: 64, seq_length: 16, " + config +
                        "}}\nparallel_config: {data_parallel: 8}\n");
  };
  expect_options(options("type: ChatGLM2Config, num_attention_heads: 4, padded_vocab_size: 65024, kv_channels: 16, "
                         "ffn_hidden_size: 128, multi_query_group_num: 2, add_qkv_bias: True, rmsnorm: True, "
                         "post_layer_norm: True, add_bias_linear: False, quantization_bit: 0, pre_seq_len: None"),
                 {{"model", "llama"},
                  {"kv-heads", "2"},
                  {"vocabulary", "65024"},
                  {"feed-forward", "128"},
                  {"qkv-bias", "on"},
                  {"rotary-width", "8"}});
  expect_options(options("type: QwenConfig, num_heads: 4, kv_channels: 128"),
                 {{"qkv-bias", "on"}, {"head-width", "128"}});
  expect_options(options("type: InternLMConfig, num_heads: 4, has_bias: True"),
                 {{"qkv-bias", "on"}, {"projection-bias", "on"}, {"kv-heads", "4"}});
  expect_options(options("type: Baichuan13BV2ForCausalLM, num_heads: 4"), {{"position", "none"}});
  expect_options(options("type: TelechatConfig, num_heads: 4, res_dtype: float32"), {{"projection-bias", "on"}});
  expect_options(options("type: BloomConfig, num_heads: 4, expand_ratio: 4, hidden_dropout_rate: 0.1, "
                         "attention_dropout_rate: 0.1"),
                 {{"norm", "layer"},
                  {"half", "gelu"},
                  {"linear-bias", "on"},
                  {"tied-embeddings", "on"},
                  {"feed-forward", "256"},
                  {"dropout", "0.1"}});
  expect_options(options("type: LlamaConfig, num_heads: 4, pet_config: {pet_type: lora, lora_rank: 8, target_modules: "
                         "'.*wq|.*wv'}"),
                 {{"lora-rank", "8"}, {"lora-targets", "q_proj,v_proj"}});
}

TEST(Mindformers, LatentAttentionAndSharedExperts) {
  const ForeignMapping mapping = yaml_mapping(
      "model: {model_config: {type: DeepseekV3Config, num_layers: 4, hidden_size: 64, num_heads: 4, seq_length: 16, "
      "vocab_size: 100, intermediate_size: 128, kv_lora_rank: 32, q_lora_rank: 48, qk_rope_head_dim: 8, v_head_dim: "
      "16, "
      "qk_nope_head_dim: 16, n_kv_heads: 4, mtp_depth: 1, compute_dtype: bfloat16}}\n"
      "parallel_config: {data_parallel: 32}\n"
      "moe_config: {expert_num: 16, num_experts_chosen: 4, shared_expert_num: 2.0, moe_intermediate_size: 24, "
      "first_k_dense_replace: 1, use_gmm: True, capacity_factor: 1.5}\n");
  expect_options(mapping, {{"model", "deepseek"},
                           {"kv-rank", "32"},
                           {"q-rank", "48"},
                           {"head-width", "16"},
                           {"rotary-width", "8"},
                           {"value-width", "16"},
                           {"experts", "16"},
                           {"moe-top-k", "4"},
                           {"expert-width", "24"},
                           {"shared-width", "48"},
                           {"dense-layers", "1"},
                           {"further-tokens", "1"},
                           {"moe-capacity", "dropless"},
                           {"platform", "910B2:4"}});
  EXPECT_EQ(value_of(mapping, "kv-heads"), "");
}

TEST(Mindformers, WrongValuesAndOtherFilesAreRefused) {
  EXPECT_THAT(refusal_of("a: 1\n"), HasSubstr("is no file of mindformers"));
  EXPECT_THAT(refusal_of("- a\n"), HasSubstr("is no file of mindformers"));
  EXPECT_THAT(refusal_of("a: [1\n"), HasSubstr("no YAML"));
  EXPECT_THAT(refusal_of("parallel_config: {data_parallel: many}\n"), HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal_of("parallel_config: {data_parallel: 0}\n"), HasSubstr("must be 1 or more"));
  EXPECT_THAT(refusal_of("parallel_config: {data_parallel: 8}\nparallel: {parallel_mode: 7}\n"),
              HasSubstr("accepted: 0 (data_parallel)"));
}

TEST(Megatron, ArgumentsOfTheScriptBecomeOptions) {
  const ForeignMapping mapping = map_megatron(data("gpt3_175b.sh"), {});
  expect_options(mapping, {{"model", "gpt"},
                           {"layers", "96"},
                           {"feed-forward", "49152"},
                           {"npus", "128"},
                           // 50257 tokens up to a multiple of 128 · 8.
                           {"vocabulary", "51200"},
                           // $((96 / (16 * 2))) = 3 layers in each of 96 / 16 / 3 = 2 parts of a stage.
                           {"chunks", "2"},
                           {"schedule", "1f1b-interleave"},
                           {"global-batch", "64"},
                           {"micro-batch-size", "1"},
                           {"recompute", "full"},
                           {"loss-scale", "dynamic:4294967296"}});
}

TEST(Megatron, TextsOfArgumentsAndMixturesOfExperts) {
  const ForeignMapping llama = map_megatron(data("llama2_7b.sh"), {});
  expect_options(llama, {{"model", "llama"},
                         {"vocabulary", "32000"},
                         {"model-parallel", "2"},
                         {"global-batch", "16"},
                         {"grad-dtype", "fp32"},
                         {"optimizer-parallel", "zero1"}});
  const ForeignMapping mixtral = map_megatron(data("mixtral_8x7b.sh"), {});
  expect_options(mixtral, {{"model", "mixtral"},
                           {"kv-heads", "8"},
                           {"expert-parallel", "8"},
                           {"moe-capacity", "dropless"},
                           {"npus", "64"},
                           {"micro-batch-size", "1"}});
}

std::string script_refusal(const std::string& text, const std::vector<std::string>& ignored = {}) {
  return message_of([&] { return map_megatron_text(text, "train.sh", ignored); });
}

TEST(Megatron, WhatHasNoCounterpartIsRefusedByName) {
  const std::string start = "python pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 ";
  EXPECT_EQ(script_refusal(start), "no error");
  EXPECT_THAT(script_refusal(start + "--delay-grad-reduce"),
              HasSubstr("train.sh:1: --delay-grad-reduce: no option of run stands for it"));
  EXPECT_EQ(script_refusal(start + "--delay-grad-reduce", {"delay-grad-reduce"}), "no error");
  EXPECT_THAT(script_refusal(start + "--brand-new 3"), HasSubstr("--brand-new 3: no argument of Megatron"));
  EXPECT_THAT(script_refusal(start + "--fp16 --bf16"), HasSubstr("train.sh:1: --fp16 and --bf16 exclude each other"));
  EXPECT_EQ(script_refusal(start + "--swiglu"), "no error");
  EXPECT_THAT(script_refusal(start + "--micro-batch-size $MBS"), HasSubstr("--micro-batch-size depends on $MBS"));
  EXPECT_THAT(script_refusal(start + "--micro-batch-size 0"), HasSubstr("must be 1 or more"));
  EXPECT_THAT(script_refusal("python pretrain_gpt.py --num-layers 2\n"), HasSubstr("--hidden-size is not given"));
  EXPECT_THAT(script_refusal("torchrun pretrain_t5.py --encoder-num-layers 12\n"),
              HasSubstr("train.sh:1: --encoder-num-layers: networks of an encoder and a decoder are not simulated"));
  EXPECT_THAT(script_refusal("echo --num-layers\n"), HasSubstr("no command of this script"));
  EXPECT_THAT(script_refusal("torchrun --nproc_per_node 8 train_fsdp2.py a.yaml --parallel.fsdp_size 8\n"),
              HasSubstr("train.sh:1: a.yaml is not there"));
}

TEST(Megatron, TheLastTrainingOfAScriptCounts) {
  const std::string sizes = " --num-layers 2 --hidden-size 64 --num-attention-heads 4 --micro-batch-size ";
  const ForeignMapping mapping = map_megatron_text("python convert_ckpt.py" + sizes + "1\npython pretrain_gpt.py" +
                                                       sizes + "2\npython pretrain_gpt.py" + sizes + "3\nwait\n",
                                                   "train.sh", {});
  expect_options(mapping, {{"batch", "3"}});
  EXPECT_EQ(mapping.left_out.front().source, "the training that line 2 starts");
}

// In the order of how surely it is told: by the name, by the NPUs of a node; else an A2 is taken.
TEST(Megatron, TheNpuComesFromTheScript) {
  const std::string sizes = " pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4\n";
  const auto platform = [&](const std::string& launcher, const std::string& file) {
    return value_of(map_megatron_text(launcher + sizes, file, {}), "platform");
  };
  EXPECT_EQ(platform("msrun --worker_num 16 --local_worker_num=8", "pretrain_ms.sh"), "atlas800t-a2-x2");
  EXPECT_EQ(platform("torchrun --nproc_per_node 8 --nnodes 1", "dir_A3/pretrain_8B_A2.sh"), "atlas800t-a2");
  EXPECT_EQ(platform("torchrun --nproc_per_node 8 --nnodes 4", "pretrain_a3_ptd.sh"), "atlas900-a3-superpod");
  EXPECT_EQ(platform("torchrun --nproc_per_node 16", "train.sh"), "atlas900-a3");
  EXPECT_EQ(platform("NPUS_PER_NODE=8\ntorchrun --nproc_per_node $NPUS_PER_NODE", "train.sh"), "atlas800t-a2");
  EXPECT_EQ(platform("torchrun --nproc_per_node 8", "train.sh"), "atlas800t-a2");
  const ForeignMapping large = map_megatron_text("torchrun --nproc_per_node 8 --nnodes 16" + sizes, "a2.sh", {});
  expect_options(large, {{"npus", "128"}, {"platform", "910B2:16"}});
  const ForeignMapping later = map_megatron_text("torchrun --nproc_per_node 8" + sizes, "x_A5.sh", {});
  EXPECT_EQ(later.left_out.front().source, "an NPU of generation A5");
}

// Megatron takes no shortened names, and a known beginning makes no argument known.
TEST(Megatron, UnknownArgumentsAreRefusedWithTheNearestOne) {
  const std::string start = "python pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 ";
  for (const char* const known : {"--lr 1e-4 --adam-beta1 0.9 --weight-decay 0.1 --seed 5 --train-iters 500000",
                                  "--log-interval 1 --save a --apply-layernorm-1p --no-rope-fusion"}) {
    EXPECT_EQ(script_refusal(start + known), "no error") << known;
  }
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"--adam-beta9 1", "that is known (did you mean --adam-beta1?)"},
      {"--weight-decayed 0.1", "(did you mean --weight-decay?)"},
      {"--seeds 5", "(did you mean --seed?)"},
      {"--train-itersx 5", "(did you mean --train-iters?)"},
      {"--micro-batch 4", "(did you mean --micro-batch-size?)"},
      {"--lr-foo 3", "--lr-foo 3: no argument of Megatron or MindSpeed that is known; --ignore-keys lr-foo"},
      {"--save-bar", "--save-bar: no argument"}};
  for (const auto& [argument, message] : wrong) {
    EXPECT_THAT(script_refusal(start + argument), HasSubstr(message)) << argument;
  }
}

// One buffer, main_grad: --accumulate-allreduce-grads-in-fp32 says of what type with fp16, and bf16 has it always.
TEST(Megatron, GradientsHaveTheTypeOfTheirBuffer) {
  const std::string start = "python pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 ";
  const std::vector<std::pair<std::string, std::string>> types{
      {"--fp16", "fp16"},
      {"--fp16 --accumulate-allreduce-grads-in-fp32", "fp32"},
      {"--bf16", "fp32"},
      {"--bf16 --no-gradient-accumulation-fusion", "fp32"},
      {"--bf16 --no-gradient-accumulation-fusion --use-distributed-optimizer", "fp32"},
      {"--bf16 --grad-reduce-in-bf16", "bf16"},
      {"", "fp32"}};
  for (const auto& [arguments, type] : types) {
    const ForeignMapping mapping = map_megatron_text(start + arguments, "train.sh", {});
    EXPECT_EQ(value_of(mapping, "grad-dtype"), type) << arguments;
    // Sent as it is kept.
    EXPECT_EQ(value_of(mapping, "comm-dtype"), "") << arguments;
  }
}

TEST(Megatron, AllThatIsRefusedIsNamedAtOnce) {
  const std::string script =
      "python pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --delay-grad-reduce \\\n"
      "  --brand-new 3 --other-new\n";
  EXPECT_THAT(
      script_refusal(script),
      AllOf(HasSubstr("train.sh: 3 keys have no counterpart; --ignore-keys brand-new,delay-grad-reduce,other-new "
                      "leaves them out:"),
            HasSubstr("train.sh:1: --delay-grad-reduce: no option"),
            HasSubstr("train.sh:2: --other-new: no argument of")));
  EXPECT_EQ(script_refusal(script, {"delay-grad-reduce", "brand-new", "other-new"}), "no error");
}

// Layers of MindSpeed that do nothing: the last one of 8 in 4 stages.
TEST(Megatron, ArgumentsOfMindSpeed) {
  const std::string script =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 64 --num-attention-heads 4 "
      "--pipeline-model-parallel-size 4 --context-parallel-size 1 --context-parallel-algo ulysses_cp_algo --swiglu "
      "--normalization RMSNorm --use-rotary-position-embeddings --position-embedding-type rope --disable-bias-linear "
      "--untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 --num-experts 8 "
      "--moe-token-dispatcher-type alltoall_seq --expert-model-parallel-size 2 --moe-layer-freq -1 "
      "--first-k-dense-replace -1 --vocab-size 1000 --padded-vocab-size 1024 ";
  EXPECT_EQ(script_refusal(script), "no error");
  const ForeignMapping mapping = map_megatron_text(script + "--noop-layers 7", "train.sh", {});
  expect_options(mapping, {{"layers", "7"}, {"stage-layers", "2,2,2,1"}, {"vocabulary", "1024"}, {"model", "mixtral"}});
  EXPECT_THAT(script_refusal(script + "--noop-layers 8"), HasSubstr("there are 8 layers"));
  EXPECT_THAT(script_refusal(script + "--noop-layers x"), HasSubstr("must be numbers of layers"));
  expect_options(
      map_megatron_text(script + "--noop-layers 7 --num-layers-per-virtual-pipeline-stage 1", "train.sh", {}),
      {{"stage-layers", "1,1,1,1,1,1,1,0"}});
  const std::string two = script + "--pipeline-model-parallel-size 2 ";
  expect_options(map_megatron_text(two + "--noop-layers 7 --num-layers-per-virtual-pipeline-stage 2", "train.sh", {}),
                 {{"layers", "7"}, {"chunks", "2"}, {"stage-layers", "2,2,2,1"}, {"schedule", "1f1b-interleave"}});
  expect_options(map_megatron_text(two + "--num-layer-list 3,5", "train.sh", {}), {{"stage-layers", "3,5"}});
  EXPECT_THAT(script_refusal(two + "--num-layer-list 3,4"), HasSubstr("2 stages with 7 layers, must be 2 with 8"));
  const ForeignMapping dual = map_megatron_text(two + "--schedules-method dualpipev", "train.sh", {});
  expect_options(dual, {{"chunks", "2"}, {"schedule", "1f1b-interleave"}});
  EXPECT_EQ(dual.left_out.front().source, "--schedules-method dualpipev");
  expect_options(map_megatron_text(script + "--first-k-dense-replace 3 --moe-layer-freq 2", "train.sh", {}),
                 {{"dense-layers", "3"}, {"expert-interval", "2"}});
}

// As pretrain_gpt.py and pretrain_bert.py have it: 50257 and 30522 tokens, up to multiples of 128 · 2.
TEST(Megatron, ProgramsHaveATokenizer) {
  const std::string arguments =
      " --num-layers 2 --hidden-size 64 --num-attention-heads 4 --tensor-model-parallel-size 2 --vocab-file v.json\n";
  EXPECT_EQ(value_of(map_megatron_text("torchrun pretrain_gpt.py" + arguments, "train.sh", {}), "vocabulary"), "50432");
  EXPECT_EQ(value_of(map_megatron_text("torchrun pretrain_bert.py" + arguments, "train.sh", {}), "vocabulary"),
            "30720");
}

TEST(Megatron, RanksThatOnlyRunningTellsAreLeftToTheUser) {
  const std::string text =
      "torchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py --num-layers 2 --hidden-size 64 "
      "--num-attention-heads 4 --micro-batch-size 2 --global-batch-size 64\n";
  const ForeignMapping mapping = map_megatron_text(text, "train.sh", {});
  expect_options(mapping, {{"npus", ""}, {"global-batch", "64"}, {"micro-batch-size", "2"}});
}

}  // namespace
}  // namespace hcclsim::study
