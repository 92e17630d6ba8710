// The table of arguments of Megatron and MindSpeed, and what becomes of those that only it knows.

#include "study/files/foreign/megatron/flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "models/zoo/choices.hpp"
#include "study/files/foreign/megatron/megatron.hpp"

namespace hcclsim::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string llama =
    "export HCCL_BUFFSIZE=300\nNPUS_PER_NODE=8\ntorchrun --nproc_per_node $NPUS_PER_NODE pretrain_gpt.py --num-layers "
    "8 "
    "--hidden-size 64 --num-attention-heads 4 --vocab-size 1000 --swiglu --normalization RMSNorm "
    "--position-embedding-type "
    "rope --disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0.0 \\s "
    "--bf16 ";
const std::string mixture = llama + "--num-experts 8 --moe-token-dispatcher-type alltoall ";

ForeignMapping map(const std::string& text, const std::vector<std::string>& ignored = {}) {
  return map_megatron_text(text, "train.sh", ignored);
}

std::string refusal(const std::string& text, const std::vector<std::string>& ignored = {}) {
  try {
    static_cast<void>(map(text, ignored));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Why a key is among these; "" if it is not.
std::string reason_of(const std::vector<UnmappedKey>& keys, std::string_view source) {
  const auto found = std::ranges::find_if(keys, [&](const UnmappedKey& key) { return key.source.starts_with(source); });
  return found == keys.end() ? "" : found->reason;
}

std::string value_of(const ForeignMapping& mapping, std::string_view option) {
  const auto found = std::ranges::find(mapping.options, option, &MappedOption::option);
  return found == mapping.options.end() ? "" : found->value;
}

TEST(MegatronFlags, EachHasOneLineWithAReason) {
  std::set<std::string_view> names;
  for (const auto part : {megatron_flags_of_bookkeeping(), megatron_flags_of_network(), megatron_flags_of_experts(),
                          megatron_flags_of_spreading(), megatron_flags_of_kernels(), megatron_flags_of_tuning()}) {
    for (const MegatronFlag& flag : part) {
      EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
      EXPECT_FALSE(flag.reason.empty()) << flag.name;
      EXPECT_EQ(current_megatron_name(flag.name) == flag.name || find_megatron_flag(flag.name) != nullptr, true);
      for (const std::string_view needed : split(flag.needs, '|')) {
        EXPECT_TRUE(needed.empty() || find_megatron_flag(needed) != nullptr) << flag.name << " needs " << needed;
      }
      // Who is told that the step differs is told to which side.
      const bool says = flag.reason.find("than") != std::string_view::npos || flag.name == "calculate-per-token-loss" ||
                        flag.name.ends_with("-num-layers");
      EXPECT_TRUE(flag.kind != MegatronFlagKind::left_out || says) << flag.name;
    }
  }
  EXPECT_GT(names.size(), 700U);
  EXPECT_EQ(find_megatron_flag("parallel.fsdp_size")->kind, MegatronFlagKind::refused);
  EXPECT_EQ(find_megatron_flag("nonsense"), nullptr);
}

TEST(MegatronFlags, SchedulesMemoryAndOverlapAreAcceptedWithWhatIsLeftOut) {
  const ForeignMapping mapping =
      map(mixture +
          "--moe-alltoall-overlap-comm --swap-attention --swap-optimizer --swap-optimizer-times 4 "
          "--reuse-fp32-param --use-ascend-coc --coc-fused-kernel --tensor-model-parallel-size 2 --log-interval 1 "
          "--reset-attention-mask --fix-sub-seq-length 8 --moe-aux-loss-coeff 0.01 --moe-zero-memory disable");
  EXPECT_THAT(reason_of(mapping.left_out, "--moe-alltoall-overlap-comm"), HasSubstr("slower than the real one"));
  EXPECT_THAT(reason_of(mapping.left_out, "--swap-attention"), HasSubstr("more memory is accounted than is taken"));
  EXPECT_THAT(reason_of(mapping.left_out, "--coc-fused-kernel"), HasSubstr("slower than the real one"));
  EXPECT_THAT(reason_of(mapping.left_out, "--log-interval 1"), HasSubstr("faster than the real one"));
  EXPECT_EQ(value_of(mapping, "documents"), "8");
  EXPECT_EQ(value_of(mapping, "hbm-check"), "warn");  // more memory is accounted than is taken
  EXPECT_THAT(reason_of(mapping.left_out, "--moe-aux-loss-coeff 0.01"), HasSubstr("small kernels of a router"));
  EXPECT_EQ(reason_of(mapping.without_effect, "--moe-zero-memory disable"), "it is off");
  EXPECT_NE(reason_of(mapping.without_effect, "--use-ascend-coc"), "");
  // What is not there says something too.
  EXPECT_THAT(reason_of(mapping.left_out, "no --use-fused-rmsnorm"), HasSubstr("faster than the real one"));
  EXPECT_THAT(reason_of(mapping.left_out, "no --fix-router"), HasSubstr("--moe-imbalance"));
  EXPECT_EQ(value_of(mapping, "hccl-buffsize"), "300");
  EXPECT_EQ(reason_of(mapping.left_out, "'s' behind --attention-dropout"), "no argument takes this word");
}

TEST(MegatronFlags, WhatNeedsAnotherArgumentSaysNothingWithoutIt) {
  const ForeignMapping mapping = map(llama +
                                     "--coc-fused-kernel --kv-lora-rank 512 --v-head-dim 128 --mtp-num-layers 0 "
                                     "--moe-router-topk 2 --recompute-method block --recompute-num-layers 3 "
                                     "--tp-2d --use-cp-send-recv-overlap --n-shared-experts 1 --num-experts 1");
  EXPECT_EQ(reason_of(mapping.without_effect, "--kv-lora-rank"), "without --multi-latent-attention it says nothing");
  EXPECT_EQ(reason_of(mapping.without_effect, "--mtp-num-layers 0"), "it is off");
  EXPECT_THAT(reason_of(mapping.without_effect, "--tp-2d"),
              HasSubstr("without --tensor-model-parallel-size that counts"));
  EXPECT_THAT(reason_of(mapping.without_effect, "--recompute-num-layers 3"), HasSubstr("--recompute-granularity full"));
  EXPECT_NE(reason_of(mapping.without_effect, "--moe-router-topk 2"), "");
  EXPECT_NE(reason_of(mapping.without_effect, "--n-shared-experts 1"), "");
  EXPECT_EQ(value_of(mapping, "recompute"), "");
}

TEST(MegatronFlags, AFeatureIsRefusedInOneSentence) {
  const std::string shared = llama + "--cla-share-factor 2 --share-kvstates ";
  EXPECT_THAT(refusal(shared), AllOf(HasSubstr("--share-kvstates, --cla-share-factor 2: every layer has keys"),
                                     HasSubstr("--ignore-keys share-kvstates leaves it out")));
  EXPECT_EQ(refusal(shared, {"share-kvstates"}), "no error");
  EXPECT_EQ(refusal(shared, {"cla-share-factor"}), "no error");
  EXPECT_EQ(refusal(llama + "--stage sft --is-instruction-dataset"), "no error");
  for (const auto& [more, message] : std::vector<std::pair<std::string, std::string>>{
           {"--lora-r 8 --lora-target-modules a b c", "linear_fc1"},
           {"--stage rm", "pt, sft or dpo"},
           {"--expert-tensor-parallel-size 2 --tensor-model-parallel-size 4 --num-experts 8", "or by none"},
           {"--spec mindspeed_llm.tasks.models.spec.hunyuan_spec layer_spec", "layers that share them"},
           {"--spec my.own.layer layer_spec", "its Python alone tells"},
           {"--enable-high-availability", "kept twice"}}) {
    EXPECT_THAT(refusal(llama + more), HasSubstr(message)) << more;
  }
  EXPECT_EQ(refusal(llama + "--spec mindspeed_llm.tasks.models.spec.qwen3_spec layer_spec"), "no error");
}

TEST(MegatronFlags, PartsOfDecoders) {
  const ForeignMapping qwen = map(llama + "--qk-layernorm --add-qkv-bias --kv-channels 128");
  EXPECT_EQ(value_of(qwen, "qk-norm"), "on");
  EXPECT_EQ(value_of(qwen, "qkv-bias"), "on");
  EXPECT_EQ(value_of(qwen, "head-width"), "128");
  EXPECT_EQ(value_of(qwen, "tied-embeddings"), "off");
  const std::string untied = "--untie-embeddings-and-output-weights ";
  std::string tied = llama;
  tied.erase(tied.find(untied), untied.size());
  EXPECT_EQ(value_of(map(tied), "tied-embeddings"), "on");
}

/// The options that a script comes to, as a network.
models::Graph network_of(const ForeignMapping& mapping) {
  models::ModelOptions options{.name = value_of(mapping, "model"), .batch = 1};
  options.dropless = value_of(mapping, "moe-capacity") == "dropless";
  for (const models::ModelChoice& choice : models::model_choices()) {
    const std::string text = value_of(mapping, choice.key);
    if (text.empty()) continue;
    const auto take = [&](auto member) {
      auto& value = options.*member;
      using Chosen = std::decay_t<decltype(*value)>;
      if constexpr (std::is_same_v<Chosen, bool>) {
        value = text == "on";
      } else if constexpr (std::is_enum_v<Chosen>) {
        const auto& names = models::kind_names<Chosen>;
        value = static_cast<Chosen>(std::ranges::find(names, text) - names.begin());
      } else if constexpr (std::is_same_v<Chosen, std::string>) {
        value = text;
      } else {
        value = parse_number<Chosen>(text);
      }
    };
    std::visit(take, choice.value);
  }
  return models::make_model(options);
}

/// Sizes that scripts of MindSpeed-LLM have.
std::string script_of(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads, const std::string& more) {
  return fmt::format(
      "NPUS_PER_NODE=16\nmsrun --worker_num 64 --local_worker_num 16 pretrain_gpt.py --num-layers {} --hidden-size {} "
      "--num-attention-heads {} --seq-length 4096 --max-position-embeddings 4096 --swiglu --normalization RMSNorm "
      "--position-embedding-type rope --disable-bias-linear --hidden-dropout 0 --attention-dropout 0 --bf16 "
      "--make-vocab-size-divisible-by 1 {}",
      layers, hidden, heads, more);
}
const std::string latent_parts =
    "--multi-latent-attention --qk-layernorm --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 "
    "--qk-pos-emb-head-dim 64 --v-head-dim 128 --untie-embeddings-and-output-weights ";
const std::string latent_layers = "--spec mindspeed_llm.tasks.models.spec.deepseek_spec layer_spec " + latent_parts;
const std::string experts_of_v3 =
    "--num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048 --n-shared-experts 1 --first-k-dense-replace 3 "
    "--moe-layer-freq 1 --moe-token-dispatcher-type alltoall ";

// The numbers of parameters that the networks were published with.
TEST(MegatronNetworks, HaveThePublishedParameters) {
  const std::string v3 = latent_layers + experts_of_v3 + "--ffn-hidden-size 18432 --vocab-size 129280 ";
  const std::string untied = "--untie-embeddings-and-output-weights ";
  const std::vector<std::pair<std::string, std::uint64_t>> published{
      {script_of(61, 7168, 128, v3), 671'026'404'352},
      {script_of(64, 7168, 128, v3 + "--noop-layers 61,62,63 --mtp-num-layers 1"), 671'026'404'352 + 11'610'067'968},
      {script_of(61, 7168, 128,
                 v3 + "--enable-dsa-indexer --index-n-heads 64 --index-head-dim 128 --index-topk 2048 "
                      "--use-sparse-flash-attn --use-fused-lightning-indexer"),
       671'877'929'216},
      {script_of(27, 2048, 16,
                 "--multi-latent-attention --qk-layernorm --kv-lora-rank 512 --qk-head-dim 128 --v-head-dim 128 "
                 "--qk-pos-emb-head-dim 64 --num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1408 "
                 "--n-shared-experts 2 --first-k-dense-replace 1 --ffn-hidden-size 10944 --vocab-size 102400 " +
                     untied),
       15'706'484'224},
      {script_of(48, 2048, 32,
                 "--group-query-attention --num-query-groups 4 --kv-channels 128 --qk-layernorm --num-experts 128 "
                 "--moe-router-topk 8 --moe-ffn-hidden-size 768 --ffn-hidden-size 6144 --vocab-size 151936 " +
                     untied),
       30'532'122'624},
      {script_of(42, 3584, 16,
                 "--spec mindspeed_llm.tasks.models.spec.gemma2_spec layer_spec --group-query-attention "
                 "--num-query-groups 8 --kv-channels 256 --gelu-tanh --ffn-hidden-size 14336 --vocab-size 256000 "
                 "--input-embeds-norm --output-logit-softcapping 30.0 --interleave-sliding-window 4096"),
       9'241'705'984},
      {script_of(40, 4096, 32,
                 "--group-query-attention --num-query-groups 2 --add-qkv-bias --use-glm-rope --rotary-percent 0.5 "
                 "--post-norm --ffn-hidden-size 13696 --vocab-size 151552 " +
                     untied),
       9'400'279'040},
      {script_of(28, 6144, 64,
                 "--spec mindspeed_llm.tasks.models.spec.longcat_spec layer_spec " + latent_parts +
                     "--num-experts 512 --num-zero-experts 256 --moe-router-topk 12 --moe-ffn-hidden-size 2048 "
                     "--ffn-hidden-size 12288 --vocab-size 131072"),
       560'664'958'976},
      {script_of(48, 2048, 16,
                 "--spec mindspeed_llm.tasks.models.spec.qwen3_next_spec layer_spec --full-attention-interval 4 "
                 "--linear-key-head-dim 128 --linear-value-head-dim 128 --linear-num-key-heads 16 "
                 "--linear-num-value-heads 32 --mamba-chunk-size 64 --use-triton-gdn --group-query-attention "
                 "--num-query-groups 2 --kv-channels 256 --partial-rotary-factor 0.25 --qk-layernorm --num-experts 512 "
                 "--moe-router-topk 10 --moe-ffn-hidden-size 512 --moe-shared-expert-intermediate-size 512 "
                 "--shared-expert-gate --ffn-hidden-size 5120 --vocab-size 151936 --add-rmsnorm-offset " +
                     untied),
       79'674'391'296},
      {script_of(62, 3072, 48,
                 "--spec mindspeed_llm.tasks.models.spec.minimax_spec layer_spec --multi-latent-attention "
                 "--group-query-attention --num-query-groups 8 --kv-channels 128 --qk-layernorm --num-experts 256 "
                 "--moe-router-topk 8 --moe-ffn-hidden-size 1536 --ffn-hidden-size 1536 --vocab-size 200064 " +
                     untied),
       228'689'748'992}};
  for (const auto& [script, parameters] : published) {
    EXPECT_EQ(network_of(map(script)).parameter_elements(), parameters) << script;
  }
}

TEST(MegatronNetworks, WhatDoesNotMakeParameters) {
  const ForeignMapping zero =
      map(script_of(28, 6144, 64,
                    "--spec mindspeed_llm.tasks.models.spec.longcat_spec layer_spec --num-experts "
                    "512 --num-zero-experts 256 --moe-router-topk 12 --ffn-hidden-size 12288 "
                    "--vocab-size 131072 --pipeline-model-parallel-size 2 --num-layer-list 15,13"));
  EXPECT_EQ(value_of(zero, "moe-top-k"), "8");  // of 12 in the mean, where all are used evenly
  EXPECT_EQ(value_of(zero, "layers"), "56");
  EXPECT_EQ(value_of(zero, "stage-layers"), "30,26");
  EXPECT_EQ(value_of(zero, "expert-interval"), "2");
  EXPECT_THAT(reason_of(zero.left_out, "--spec"), HasSubstr("each layer is two here"));
  const ForeignMapping lora =
      map(llama + "--stage sft --lora-r 16 --lora-alpha 32 --lora-fusion --lora-target-modules linear_qkv linear_proj");
  EXPECT_EQ(value_of(lora, "lora-rank"), "16");
  EXPECT_EQ(value_of(lora, "lora-targets"), "q_proj,k_proj,v_proj,o_proj");
  EXPECT_THAT(reason_of(lora.left_out, "--lora-fusion"), HasSubstr("slower than the real one"));
  const ForeignMapping all =
      map(llama + "--lora-r 16 --lora-target-modules linear_qkv linear_proj linear_fc1 linear_fc2");
  EXPECT_EQ(value_of(all, "lora-targets"), "");
  const ForeignMapping pairs =
      map(llama + "--stage dpo --is-pairwise-dataset --micro-batch-size 1 --global-batch-size 16");
  EXPECT_EQ(value_of(pairs, "reference"), "on");
  EXPECT_EQ(value_of(pairs, "micro-batch-size"), "2");
  EXPECT_EQ(value_of(pairs, "global-batch"), "32");
  const ForeignMapping idle = map(llama + "--pipeline-model-parallel-size 2 --noop-layers 4,5,6,7");
  EXPECT_EQ(value_of(idle, "stage-layers"), "4,0");
}

TEST(MegatronNetworks, ExpertsOverRanks) {
  const std::string sharers = "--tensor-model-parallel-size 4 --sequence-parallel --expert-model-parallel-size 2 ";
  const auto options = [&](const std::string& more) {
    const ForeignMapping mapping = map(mixture + sharers + more);
    return value_of(mapping, "expert-parallel") + " " + value_of(mapping, "expert-tensor-parallel");
  };
  EXPECT_EQ(options(""), "2 ");
  EXPECT_EQ(options("--expert-tensor-parallel-size 4"), "2 ");
  EXPECT_EQ(options("--expert-tensor-parallel-size 1"), "2 1");
  EXPECT_EQ(options("--moe-tp-extend-ep"), "8 1");
}

TEST(MegatronFlags, RecomputingOfLayersAndOperators) {
  const auto recompute = [](const std::string& more) { return value_of(map(llama + more), "recompute"); };
  EXPECT_EQ(recompute("--recompute-activation-function"), "operators:swiglu");
  EXPECT_EQ(recompute("--recompute-norm --recompute-activation-function"), "operators:swiglu,rms_norm");
  const std::string full = "--recompute-granularity full --recompute-method ";
  EXPECT_EQ(recompute(full + "uniform --recompute-num-layers 1"), "full");
  EXPECT_EQ(recompute(full + "uniform --recompute-num-layers 2"), "full");
  EXPECT_EQ(recompute(full + "block --recompute-num-layers 3"), "layers:3");
  // Of each of two parts of a stage, unless they are those of a stage.
  const std::string parts = full +
                            "block --recompute-num-layers 1 --pipeline-model-parallel-size 2 "
                            "--num-layers-per-virtual-pipeline-stage 2 ";
  EXPECT_EQ(recompute(parts), "layers:2");
  EXPECT_EQ(recompute(parts + "--enable-recompute-layers-per-pp-rank"), "layers:1");
  const ForeignMapping both = map(llama + full + "block --recompute-num-layers 3 --recompute-norm");
  EXPECT_THAT(reason_of(both.left_out, "--recompute-norm"), HasSubstr("more memory is accounted"));
}

TEST(MegatronFlags, TokensOfTheNetworkThatTheScriptIsCalledBy) {
  const std::string text =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 "
      "--make-vocab-size-divisible-by 1 --tokenizer-type PretrainedFromHF --tokenizer-name-or-path 'your tokenizer'";
  EXPECT_EQ(value_of(map_megatron_text(text, "pretrain_llama2_13b.sh", {}), "vocabulary"), "32000");
  EXPECT_EQ(value_of(map_megatron_text(text, "dir/pretrain_llama33_70b.sh", {}), "vocabulary"), "128256");
  EXPECT_EQ(value_of(map_megatron_text(text, "pretrain_deepseek_500b_8k.sh", {}), "vocabulary"), "32000");
  EXPECT_THAT(refusal(text), Not(HasSubstr("no error")));
}

const std::string compressed =
    "torchrun --nproc_per_node 8 pretrain_deepseek4.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 "
    "--padded-vocab-size 1000 --swiglu --normalization RMSNorm --position-embedding-type deepseek4 "
    "--disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 --bf16 "
    "--spec mindspeed_llm.tasks.models.spec.deepseek4_spec layer_spec --multi-latent-attention --kv-compress "
    "--qk-head-dim 32 --qk-pos-emb-head-dim 8 --q-lora-rank 24 --o-groups 2 --o-lora-rank 12 --kv-lora-rank 32 "
    "--sliding-window-size 16 --compress-ratios 0 4 128 4 --enable-mhc --hc-mult 4 --enable-dsa-indexer --index-topk 8 "
    "--n-hash-layers 1 ";

// DeepSeek-V4: one head of keys and values, compressors, streams.
TEST(MegatronFlags, CompressedAttention) {
  const ForeignMapping mapping = map(compressed);
  for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{{"model", "deepseek-v4-flash"},
                                                                                      {"head-width", "32"},
                                                                                      {"rotary-width", "8"},
                                                                                      {"q-rank", "24"},
                                                                                      {"output-groups", "2"},
                                                                                      {"output-rank", "12"},
                                                                                      {"window", "16"},
                                                                                      {"compress-ratios", "0,4,128,4"},
                                                                                      {"residual-streams", "4"},
                                                                                      {"index-top-k", "8"}}) {
    EXPECT_EQ(value_of(mapping, option), value) << option;
  }
  EXPECT_EQ(value_of(mapping, "kv-rank"), "");
  EXPECT_NE(reason_of(mapping.left_out, "--n-hash-layers 1"), "");
  EXPECT_NE(reason_of(mapping.left_out, "no --use-fused-mhc"), "");
}

// Letters of stages, chunk by chunk: two stages of two parts.
TEST(MegatronFlags, LayoutsOfPipelines) {
  const std::string staged = llama + "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout ";
  const ForeignMapping parts = map(staged + "'Et*3|t|t*2|(t,)*2mL'");
  EXPECT_EQ(value_of(parts, "stage-layers"), "3,1,2,2");
  EXPECT_EQ(value_of(parts, "chunks"), "2");
  EXPECT_EQ(value_of(parts, "schedule"), "1f1b-interleave");
  const ForeignMapping stages = map(staged + "'Et*5|t*3L'");
  EXPECT_EQ(value_of(stages, "stage-layers"), "5,3");
  EXPECT_EQ(value_of(stages, "chunks"), "");
  EXPECT_THAT(refusal(staged + "'Ettt|t'"), HasSubstr("2 parts with 4 layers, must be those of 2 stages with 8"));
  for (const char* const wrong : {"'Et*|t'", "'Ex|t'", "'E(t|t'", "'Et)|t'", "'Et*99999999999|t'"}) {
    EXPECT_THAT(refusal(staged + wrong), HasSubstr("is no layout")) << wrong;
  }
}

// Megatron's list of layers with experts.
TEST(MegatronFlags, ListsOfLayersWithExperts) {
  const ForeignMapping dense = map(mixture + "--moe-layer-freq '([0]*3+[1]*5)'");
  EXPECT_EQ(value_of(dense, "dense-layers"), "3");
  EXPECT_EQ(value_of(dense, "expert-interval"), "");
  const ForeignMapping turns = map(mixture + "--moe-layer-freq '[1,0]*4'");
  EXPECT_EQ(value_of(turns, "dense-layers"), "0");
  EXPECT_EQ(value_of(turns, "expert-interval"), "2");
  EXPECT_THAT(refusal(mixture + "--moe-layer-freq '([0]*3+[1]*4)'"), HasSubstr("is no list of 8 zeros and ones"));
  EXPECT_THAT(refusal(mixture + "--moe-layer-freq '([0]*x+[1]*4)'"), HasSubstr("is no list of 8 zeros and ones"));
  EXPECT_THAT(refusal(mixture + "--moe-layer-freq '([1]*3+[0]*1+[1]*4)'"),
              HasSubstr("layers in front have no experts"));
}

// Experts are filled up to their capacity where the script says so; else rows beyond it are dropped, of which there are
// none where all are used evenly.
TEST(MegatronFlags, CapacityOfExperts) {
  const std::string capacity = mixture + "--moe-expert-capacity-factor 1.5 ";
  EXPECT_EQ(value_of(map(capacity), "moe-capacity"), "dropless");
  EXPECT_NE(reason_of(map(capacity).left_out, "--moe-expert-capacity-factor"), "");
  EXPECT_EQ(value_of(map(capacity + "--moe-pad-expert-input-to-capacity"), "moe-capacity"), "1.5");
}

// A million gradients for each replica, and 40 million at least.
TEST(MegatronFlags, BucketsGrowWithReplicas) {
  const std::string overlapped = llama + "--overlap-grad-reduce ";
  EXPECT_EQ(value_of(map(overlapped), "fusion"), "size:152");  // 160 MB
  std::string many = overlapped;
  many.replace(many.find("NPUS_PER_NODE=8"), 15, "NPUS_PER_NODE=64");
  EXPECT_EQ(value_of(map(many), "fusion"), "size:244");  // 64 replicas: 256 MB
}

// Without --use-flash-attn MindSpeed writes the scores out.
TEST(MegatronFlags, AttentionThatIsNotFused) {
  EXPECT_EQ(value_of(map(llama), "fused-attention"), "off");
  EXPECT_EQ(value_of(map(llama + "--use-flash-attn"), "fused-attention"), "on");
}

}  // namespace
}  // namespace hcclsim::study
