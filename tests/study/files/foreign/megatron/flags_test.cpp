// The table of arguments of Megatron and MindSpeed, and what becomes of those that only it knows.

#include "study/files/foreign/megatron/flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
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
  EXPECT_THAT(reason_of(mapping.left_out, "--fix-sub-seq-length 8"), HasSubstr("within its document"));
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
  const std::string latent = llama + "--q-lora-rank 64 --multi-head-latent-attention --qk-rope-head-dim 16 ";
  EXPECT_THAT(refusal(latent),
              AllOf(HasSubstr("--multi-head-latent-attention, --q-lora-rank 64, --qk-rope-head-dim 16: "
                              "latent attention (MLA) has no options"),
                    HasSubstr("--ignore-keys multi-latent-attention leaves it out")));
  EXPECT_EQ(refusal(latent, {"multi-latent-attention"}), "no error");
  EXPECT_EQ(refusal(latent, {"q-lora-rank"}), "no error");
  EXPECT_THAT(refusal(mixture + "--n-shared-experts 2 --shared-expert-gate"),
              HasSubstr("--n-shared-experts 2, --shared-expert-gate: no expert of this network is shared"));
  EXPECT_THAT(refusal(llama + "--stage dpo --is-pairwise-dataset"), HasSubstr("pairs of answers"));
  EXPECT_EQ(refusal(llama + "--stage sft --is-instruction-dataset"), "no error");
  for (const auto& [more, message] : std::vector<std::pair<std::string, std::string>>{
           {"--mtp-num-layers 1", "further tokens (MTP)"},
           {"--lora-r 8 --lora-target-modules a b c", "adapters (LoRA)"},
           {"--spec mindspeed_llm.tasks.models.spec.gemma2_spec layer_spec", "gated GELU"},
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
  EXPECT_EQ(value_of(qwen, "tied-embeddings"), "");
  const std::string untied = "--untie-embeddings-and-output-weights ";
  std::string tied = llama;
  tied.erase(tied.find(untied), untied.size());
  EXPECT_EQ(value_of(map(tied), "tied-embeddings"), "on");
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

}  // namespace
}  // namespace hcclsim::study
