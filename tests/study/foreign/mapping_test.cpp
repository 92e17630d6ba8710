// Files of other programs as options of run.

#include "study/foreign/mapping.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "study/foreign/megatron.hpp"
#include "study/foreign/mindformers.hpp"

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
  EXPECT_EQ(value_of(mapping, "model"), "llama");
  EXPECT_EQ(value_of(mapping, "layers"), "80");
  EXPECT_EQ(value_of(mapping, "kv-heads"), "8");
  // (1.3 + 0.01) · 4 · 8192 = 42926, two thirds are 28617, up to a multiple of 256 28672: as published.
  EXPECT_EQ(value_of(mapping, "feed-forward"), "28672");
  EXPECT_EQ(value_of(mapping, "npus"), "64");
  EXPECT_EQ(value_of(mapping, "model-parallel"), "4");
  EXPECT_EQ(value_of(mapping, "stages"), "8");
  EXPECT_EQ(value_of(mapping, "stage-layers"), "9,10,10,10,10,10,10,11");
  EXPECT_EQ(value_of(mapping, "batch"), "16");
  EXPECT_EQ(value_of(mapping, "micro-batches"), "16");
  EXPECT_EQ(value_of(mapping, "recompute"), "layers:4,3,2,2,1,1,0,0");
  EXPECT_EQ(value_of(mapping, "enable-parallel-optimizer"), "True");
  EXPECT_EQ(value_of(mapping, "compute-dtype"), "bf16");
  EXPECT_THAT(mapping.options.front().place, HasSubstr("llama2_70b.yaml:22"));
}

TEST(Mindformers, FeedForwardOfLlamaIsRoundedAsItsLayersRoundIt) {
  EXPECT_EQ(value_of(map_mindformers(data("llama2_7b.yaml"), {}), "feed-forward"), "11008");
}

TEST(Mindformers, AccumulatesWithoutAPipeline) {
  const ForeignMapping mapping = map_mindformers(data("llama2_7b.yaml"), {});
  EXPECT_EQ(value_of(mapping, "batch"), "4");
  EXPECT_EQ(value_of(mapping, "accumulate"), "4");
  EXPECT_EQ(value_of(mapping, "micro-batches"), "");
  const auto has = [](const std::vector<UnmappedKey>& keys, std::string_view source) {
    return std::ranges::any_of(keys, [&](const UnmappedKey& key) { return key.source.starts_with(source); });
  };
  EXPECT_TRUE(has(mapping.without_effect, "auto_trans_ckpt"));
  EXPECT_TRUE(has(mapping.left_out, "context.max_device_memory"));
}

TEST(Mindformers, ExpertsMakeMixtralOfLlama) {
  const ForeignMapping mapping = map_mindformers(data("mixtral.yaml"), {});
  EXPECT_EQ(value_of(mapping, "model"), "mixtral");
  EXPECT_EQ(value_of(mapping, "experts"), "8");
  EXPECT_EQ(value_of(mapping, "moe-top-k"), "2");
  EXPECT_EQ(value_of(mapping, "moe-capacity"), "1.25");
  EXPECT_EQ(value_of(mapping, "expert-parallel"), "4");
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
  EXPECT_THAT(refusal_of(with(", fine_grain_interleave: 2")),
              HasSubstr("llm.yaml:1: model.model_config.fine_grain_interleave 2"));
  EXPECT_EQ(refusal_of(with(", fine_grain_interleave: 2"), {"fine_grain_interleave"}), "no error");
  EXPECT_THAT(refusal_of(with(", some_new_key: 1")), HasSubstr("some_new_key 1: no option of run stands for it"));
  EXPECT_THAT(refusal_of(with("") + "new_section: 1\n"), HasSubstr("llm.yaml:3: new_section"));
  EXPECT_THAT(refusal_of(with("") + "run_mode: predict\n"), HasSubstr("a step of training is simulated"));
  EXPECT_THAT(refusal_of(with("") + "optimizer: {type: Muon}\n"), HasSubstr("optimizer.type Muon"));
  EXPECT_THAT(refusal_of(with("") + "recompute_config: {select_recompute: True}\n"),
              HasSubstr("select_recompute True"));
  EXPECT_EQ(refusal_of(with(", some_new_key: False")), "no error");
  EXPECT_THAT(refusal_of(with(", some_new_key: 1, other_new_key: 2")),
              HasSubstr("2 keys have no counterpart; --ignore-keys some_new_key,other_new_key leaves them out"));
  EXPECT_THAT(refusal_of("model: {model_config: {offset: 0}}\nparallel_config: {data_parallel: 8}\n"),
              HasSubstr("give --model and its sizes; --ignore-keys model leaves it out"));
  EXPECT_THAT(refusal_of(with(""), {"nothing"}), HasSubstr("--ignore-keys nothing"));
  EXPECT_THAT(refusal_of("model: {model_config: {type: ChatGLM2Config}}\n"), HasSubstr("model type ChatGLM2Config"));
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
  EXPECT_EQ(value_of(mapping, "model"), "gpt");
  EXPECT_EQ(value_of(mapping, "layers"), "96");
  EXPECT_EQ(value_of(mapping, "feed-forward"), "49152");
  EXPECT_EQ(value_of(mapping, "npus"), "128");
  // 50257 tokens up to a multiple of 128 · 8.
  EXPECT_EQ(value_of(mapping, "vocabulary"), "51200");
  // $((96 / (16 * 2))) = 3 layers in each of 96 / 16 / 3 = 2 parts of a stage.
  EXPECT_EQ(value_of(mapping, "chunks"), "2");
  EXPECT_EQ(value_of(mapping, "schedule"), "1f1b-interleave");
  EXPECT_EQ(value_of(mapping, "global-batch"), "64");
  EXPECT_EQ(value_of(mapping, "micro-batch-size"), "1");
  EXPECT_EQ(value_of(mapping, "recompute"), "full");
  EXPECT_EQ(value_of(mapping, "loss-scale"), "dynamic:4294967296");
}

TEST(Megatron, TextsOfArgumentsAndMixturesOfExperts) {
  const ForeignMapping llama = map_megatron(data("llama2_7b.sh"), {});
  EXPECT_EQ(value_of(llama, "model"), "llama");
  EXPECT_EQ(value_of(llama, "vocabulary"), "32000");
  EXPECT_EQ(value_of(llama, "model-parallel"), "2");
  EXPECT_EQ(value_of(llama, "global-batch"), "16");
  EXPECT_EQ(value_of(llama, "grad-dtype"), "fp32");
  EXPECT_EQ(value_of(llama, "optimizer-parallel"), "zero1");
  const ForeignMapping mixtral = map_megatron(data("mixtral_8x7b.sh"), {});
  EXPECT_EQ(value_of(mixtral, "model"), "mixtral");
  EXPECT_EQ(value_of(mixtral, "kv-heads"), "8");
  EXPECT_EQ(value_of(mixtral, "expert-parallel"), "8");
  EXPECT_EQ(value_of(mixtral, "moe-capacity"), "dropless");
  EXPECT_EQ(value_of(mixtral, "npus"), "64");
  EXPECT_EQ(value_of(mixtral, "micro-batch-size"), "1");
}

std::string script_refusal(const std::string& text, const std::vector<std::string>& ignored = {}) {
  return message_of([&] { return map_megatron_text(text, "train.sh", ignored); });
}

TEST(Megatron, WhatHasNoCounterpartIsRefusedByName) {
  const std::string start = "python pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 ";
  EXPECT_EQ(script_refusal(start), "no error");
  EXPECT_THAT(script_refusal(start + "--tp-comm-overlap"),
              HasSubstr("train.sh:1: --tp-comm-overlap: no option of run stands for it"));
  EXPECT_EQ(script_refusal(start + "--tp-comm-overlap", {"tp-comm-overlap"}), "no error");
  EXPECT_THAT(script_refusal(start + "--brand-new 3"), HasSubstr("--brand-new 3: no option"));
  EXPECT_THAT(script_refusal(start + "--swiglu"), HasSubstr("LLaMA's, which has RMS norm"));
  EXPECT_THAT(script_refusal(start + "--micro-batch-size $MBS"), HasSubstr("--micro-batch-size depends on $MBS"));
  EXPECT_THAT(script_refusal(start + "--micro-batch-size 0"), HasSubstr("must be 1 or more"));
  EXPECT_THAT(script_refusal("python pretrain_gpt.py --num-layers 2\n"), HasSubstr("--hidden-size is not given"));
  EXPECT_THAT(script_refusal("echo --num-layers\n"), HasSubstr("no command of this script"));
  EXPECT_THAT(script_refusal(start + "\n" + start + "--fp16\n"), HasSubstr("a second command with --num-layers"));
}

TEST(Megatron, AllThatIsRefusedIsNamedAtOnce) {
  const std::string script =
      "python pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --tp-comm-overlap \\\n"
      "  --brand-new 3 --other-new\n";
  EXPECT_THAT(
      script_refusal(script),
      AllOf(HasSubstr("train.sh: 3 keys have no counterpart; --ignore-keys tp-comm-overlap,brand-new,other-new "
                      "leaves them out:"),
            HasSubstr("train.sh:1: --tp-comm-overlap: no option"), HasSubstr("train.sh:2: --other-new: no option")));
  EXPECT_EQ(script_refusal(script, {"tp-comm-overlap", "brand-new", "other-new"}), "no error");
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
  EXPECT_EQ(value_of(mapping, "layers"), "7");
  EXPECT_EQ(value_of(mapping, "stage-layers"), "2,2,2,1");
  EXPECT_EQ(value_of(mapping, "vocabulary"), "1024");
  EXPECT_EQ(value_of(mapping, "model"), "mixtral");
  EXPECT_THAT(script_refusal(script + "--noop-layers 8"), HasSubstr("there are 8 layers"));
  EXPECT_THAT(script_refusal(script + "--noop-layers x"), HasSubstr("must be numbers of layers"));
  EXPECT_THAT(script_refusal(script + "--noop-layers 7 --num-layers-per-virtual-pipeline-stage 1"),
              HasSubstr("--noop-layers 7: stages of several parts"));
  EXPECT_THAT(script_refusal(script + "--first-k-dense-replace 3"), HasSubstr("all layers have experts"));
}

TEST(Megatron, RanksThatOnlyRunningTellsAreLeftToTheUser) {
  const std::string text =
      "torchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py --num-layers 2 --hidden-size 64 "
      "--num-attention-heads 4 --micro-batch-size 2 --global-batch-size 64\n";
  const ForeignMapping mapping = map_megatron_text(text, "train.sh", {});
  EXPECT_EQ(value_of(mapping, "npus"), "");
  EXPECT_EQ(value_of(mapping, "global-batch"), "64");
  EXPECT_EQ(value_of(mapping, "micro-batch-size"), "2");
}

}  // namespace
}  // namespace hcclsim::study
