// Scripts of MindSpeed-LLM's FSDP2 with their YAML, and networks by the names of their weights.
#include "study/files/foreign/fsdp2/fsdp2.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "study/files/foreign/megatron/megatron.hpp"

namespace hcclsim::study {
namespace {

using testing::HasSubstr;

const std::string file_text =
    "model:\n  model_id: qwen3_moe\n  train_from_scratch: False\n"
    "data:\n  template: qwen3\n  cutoff_len: 4096\n  packing: False\n"
    "parallel:\n  fsdp_modules:\n    - model.layers.{*}\n  ep_dispatcher: eager\n  recompute: True\n"
    "  reduce_dtype: bf16\n  cp_size: 1\n"
    "training:\n  stage: pt\n  optimizer: adamw\n  max_grad_norm: 1.0\n  logging_steps: 1\n  lr: 1e-05\n";
const std::string launcher = "export HCCL_CONNECT_TIMEOUT=3600\ntorchrun --nproc_per_node 16 --nnodes 16 ";
const std::string words =
    "train_fsdp2.py dir/train.yaml --model.model_name_or_path ./weights/qwen3-235b/ --parallel.fsdp_size 256 "
    "--parallel.ep_size 2 --parallel.ep_fsdp_size 128 --training.per_device_train_batch_size 4 "
    "--training.gradient_accumulation_steps 2 --optimization.chunk_loss_size 1024 --optimization.use_flash_attn True ";

std::optional<std::string> files(const std::string& path) {
  return path == "dir/train.yaml" ? std::optional(file_text) : std::nullopt;
}

ForeignMapping map(const std::string& more = "", const std::vector<std::string>& ignored = {}) {
  return map_megatron_text(launcher + words + more, "pretrain_A3.sh", ignored, files);
}

std::string refusal(const std::string& script) {
  try {
    static_cast<void>(map_megatron_text(script, "pretrain.sh", {}, files));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string value_of(const ForeignMapping& mapping, std::string_view option) {
  const auto found = std::ranges::find(mapping.options, option, &MappedOption::option);
  return found == mapping.options.end() ? "" : found->value;
}

std::string reason_of(const std::vector<UnmappedKey>& keys, std::string_view source) {
  const auto found = std::ranges::find_if(keys, [&](const UnmappedKey& key) { return key.source.starts_with(source); });
  return found == keys.end() ? "" : found->reason;
}

TEST(Fsdp2, FileAndCommandLineMakeOneStep) {
  const ForeignMapping mapping = map();
  const std::vector<std::pair<std::string, std::string>> options{
      {"model", "qwen3-235b-a22b"}, {"platform", "910_9391:16"},     {"npus", "256"},           {"sequence", "4096"},
      {"moe-capacity", "dropless"}, {"optimizer-parallel", "zero3"}, {"expert-parallel", "2"},  {"recompute", "full"},
      {"micro-batch-size", "4"},    {"global-batch", "2048"},        {"compute-dtype", "bf16"}, {"grad-dtype", "bf16"},
      {"clip-norm", "1"},           {"fused-attention", "on"}};
  for (const auto& [option, value] : options) EXPECT_EQ(value_of(mapping, option), value) << option;
  EXPECT_THAT(reason_of(mapping.left_out, "training.optimizer adamw"), HasSubstr("faster than the real"));
  EXPECT_THAT(reason_of(mapping.left_out, "optimization.chunk_loss_size 1024"), HasSubstr("more memory"));
  EXPECT_EQ(reason_of(mapping.without_effect, "parallel.ep_dispatcher eager"), "it is what is simulated");
  EXPECT_NE(reason_of(mapping.without_effect, "training.lr"), "");
}

TEST(Fsdp2, TheCommandLineCountsBeforeTheFile) {
  EXPECT_EQ(value_of(map("--data.cutoff_len 8192"), "sequence"), "8192");
  EXPECT_EQ(value_of(map("--parallel.recompute=False"), "recompute"), "");
  const ForeignMapping shared = map("--parallel.cp_size 4 --parallel.cp_type ring");
  EXPECT_EQ(value_of(shared, "context-parallel"), "4");
  EXPECT_EQ(value_of(shared, "context-kind"), "ring");
  EXPECT_EQ(value_of(shared, "global-batch"), "512");  // 64 ranks with samples of their own
  EXPECT_EQ(value_of(map("--parallel.fsdp_size 64 --parallel.ep_fsdp_size 128"), "optimizer-parallel"),
            "zero3:shard=64");
}

TEST(Fsdp2, RefusesWhatContradictsOrIsNotKnown) {
  EXPECT_THAT(refusal(launcher + "train_fsdp2.py"), HasSubstr("none is named"));
  EXPECT_THAT(refusal(launcher + "train_fsdp2.py other.yaml"), HasSubstr("other.yaml is not there"));
  EXPECT_THAT(refusal(launcher + "train_fsdp2.py dir/train.yaml --model.model_name_or_path ./mine/"),
              HasSubstr("config.json of './mine/'"));
  EXPECT_THAT(refusal(launcher + words + "--parallel.fsdp_size 100"), HasSubstr("does not divide the 256 ranks"));
  EXPECT_THAT(refusal(launcher + words + "--parallel.ep_fsdp_size 64"), HasSubstr("are not 256 ranks"));
  EXPECT_THAT(refusal(launcher + words + "--data.cutoff_len many"), HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal(launcher + words + "--weights.kind x"), HasSubstr("no key of MindSpeed-LLM's FSDP2"));
}

TEST(Fsdp2, NetworksByTheNamesOfTheirWeights) {
  const auto named = [](std::string_view name) {
    const auto network = network_named(name);
    return network.has_value() ? fmt::format("{} {}", network->model, network->layers.value_or(0)) : "none";
  };
  EXPECT_EQ(named("./model_weights/Qwen3-8B-Base/"), "qwen3-8b 0");
  EXPECT_EQ(named("/data/ci/Qwen3-30B-A3B/hf/Qwen3-30B-A3B-layer2"), "qwen3-30b-a3b 2");
  EXPECT_EQ(named("glm52_L4_mtp"), "glm5.2 4");
  EXPECT_EQ(named("DeepSeek-V3-4L-hf"), "deepseek-v3 4");
  EXPECT_EQ(named("pretrain_qwen3_1point7b_4k_fsdp2_A2.sh"), "qwen3-1.7b 0");
  EXPECT_EQ(named("my-network"), "none");
}

}  // namespace
}  // namespace hcclsim::study
