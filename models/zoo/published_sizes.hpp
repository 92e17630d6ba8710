#pragma once

#include <cstdint>

#include "models/zoo/networks.hpp"

/// As published: Dosovitskiy et al. 2020 (ViT), Devlin et al. 2018 (BERT), Radford et al. 2019 and Brown et al. 2020
/// (GPT-2, GPT-3; 13B with 5120 features, as 40 heads of 128 give), Zeng et al. 2021 (PanGu-α), Touvron et al. 2023
/// (LLaMA-2), Grattafiori et al. 2024 (LLaMA-3), Qwen Team 2024 and 2025 (Qwen2.5, Qwen3), Jiang et al. 2024 (Mixtral),
/// DeepSeek-AI 2024 (DeepSeek-V2-Lite). Dropout and the weights of the losses of uneven use are those of their
/// pre-training.
namespace hcclsim::models::sizes {

constexpr float dropout = 0.1F;
inline constexpr zoo::Transformer vit_b16{
    .layers = 12, .hidden = 768, .heads = 12, .kv_heads = 12, .feed_forward = 3072, .sequence = 1};
inline constexpr zoo::Transformer bert_base{.layers = 12,
                                            .hidden = 768,
                                            .heads = 12,
                                            .kv_heads = 12,
                                            .feed_forward = 3072,
                                            .vocabulary = 30522,
                                            .sequence = 512,
                                            .positions = 512,
                                            .drop_rate = dropout};
inline constexpr zoo::Transformer bert_large{.layers = 24,
                                             .hidden = 1024,
                                             .heads = 16,
                                             .kv_heads = 16,
                                             .feed_forward = 4096,
                                             .vocabulary = 30522,
                                             .sequence = 512,
                                             .positions = 512,
                                             .drop_rate = dropout};
constexpr zoo::Transformer decoder(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads,
                                   std::uint32_t vocabulary, std::uint32_t sequence) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = heads,
          .feed_forward = 4 * hidden,
          .vocabulary = vocabulary,
          .sequence = sequence,
          .positions = sequence,
          .drop_rate = dropout};
}
inline constexpr zoo::Transformer gpt2_small = decoder(12, 768, 12, 50257, 1024);
inline constexpr zoo::Transformer gpt2_xl = decoder(48, 1600, 25, 50257, 1024);
inline constexpr zoo::Transformer gpt3_13b = decoder(40, 5120, 40, 50257, 2048);
inline constexpr zoo::Transformer gpt3_175b = decoder(96, 12288, 96, 50257, 2048);
inline constexpr zoo::Transformer pangu_2_6b = decoder(32, 2560, 40, 40000, 1024);
inline constexpr zoo::Transformer pangu_13b = decoder(40, 5120, 40, 40000, 1024);
constexpr zoo::Transformer llama2(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads,
                                  std::uint32_t kv_heads, std::uint32_t feed_forward) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .feed_forward = feed_forward,
          .vocabulary = 32000,
          .sequence = 4096};
}
inline constexpr zoo::Transformer llama2_7b = llama2(32, 4096, 32, 32, 11008);
inline constexpr zoo::Transformer llama2_13b = llama2(40, 5120, 40, 40, 13824);
inline constexpr zoo::Transformer llama2_70b = llama2(80, 8192, 64, 8, 28672);
constexpr zoo::Transformer llama3(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads,
                                  std::uint32_t feed_forward, bool tied = false) {
  zoo::Transformer sizes = llama2(layers, hidden, heads, 8, feed_forward);
  sizes.vocabulary = 128256;
  sizes.sequence = 8192;
  sizes.tied = tied;
  return sizes;
}
inline constexpr zoo::Transformer llama3_8b = llama3(32, 4096, 32, 14336);
inline constexpr zoo::Transformer llama3_70b = llama3(80, 8192, 64, 28672);
inline constexpr zoo::Transformer llama32_1b = llama3(16, 2048, 32, 8192, true);
inline constexpr zoo::Transformer llama32_3b = llama3(28, 3072, 24, 8192, true);
constexpr zoo::Transformer qwen25(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads,
                                  std::uint32_t kv_heads, std::uint32_t feed_forward) {
  zoo::Transformer sizes = llama2(layers, hidden, heads, kv_heads, feed_forward);
  sizes.vocabulary = 152064;
  sizes.qkv_bias = true;
  return sizes;
}
inline constexpr zoo::Transformer qwen25_7b = qwen25(28, 3584, 28, 4, 18944);
inline constexpr zoo::Transformer qwen25_72b = qwen25(80, 8192, 64, 8, 29568);
constexpr zoo::Transformer qwen3(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads,
                                 std::uint32_t feed_forward, bool tied = false) {
  zoo::Transformer sizes = llama2(layers, hidden, heads, 8, feed_forward);
  sizes.head_width = 128;
  sizes.vocabulary = 151936;
  sizes.qk_norm = true;
  sizes.tied = tied;
  return sizes;
}
inline constexpr zoo::Transformer qwen3_06b = qwen3(28, 1024, 16, 3072, true);
inline constexpr zoo::Transformer qwen3_8b = qwen3(36, 4096, 32, 12288);
inline constexpr zoo::Transformer qwen3_32b = qwen3(64, 5120, 64, 25600);
inline constexpr zoo::Transformer mixtral_8x7b = llama2(32, 4096, 32, 8, 14336);
inline constexpr zoo::Experts mixtral_experts{
    .count = 8, .feed_forward = 14336, .route = {.top_k = 2, .normalised = true, .balance_weight = 0.02F}};
inline constexpr zoo::Transformer deepseek_v2_lite{.layers = 27,
                                                   .hidden = 2048,
                                                   .heads = 16,
                                                   .kv_heads = 16,
                                                   .feed_forward = 10944,
                                                   .vocabulary = 102400,
                                                   .sequence = 4096};
inline constexpr zoo::LatentAttention deepseek_attention{.rank = 512, .width = 128, .turned = 64, .value_width = 128};
inline constexpr zoo::Experts deepseek_experts{
    .count = 64, .shared = 2, .dense_layers = 1, .feed_forward = 1408, .route = {.top_k = 6, .balance_weight = 0.001F}};
inline constexpr zoo::Transformer tiny_moe{
    .layers = 1, .hidden = 32, .heads = 4, .kv_heads = 4, .feed_forward = 32, .vocabulary = 32, .sequence = 16};
inline constexpr zoo::Experts tiny_experts{
    .count = 8, .feed_forward = 32, .route = {.top_k = 2, .normalised = true, .balance_weight = 0.01F}};

}  // namespace hcclsim::models::sizes
