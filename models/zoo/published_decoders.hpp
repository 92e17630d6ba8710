#pragma once

#include <cstdint>

#include "models/zoo/decoder.hpp"

/// As published: Touvron et al. 2023 (LLaMA-2), Grattafiori et al. 2024 (LLaMA-3), Jiang et al. 2024 (Mixtral), Abdin
/// et al. 2024 (Phi-3.5), DeepSeek-AI 2024 (DeepSeek-V2, V3), Gemma Team 2024 (Gemma-2), GLM Team 2024 and 2025
/// (ChatGLM3, GLM-4, GLM-4.5), Cai et al. 2024 (InternLM2), Qwen Team 2024 and 2025 (Qwen2, Qwen2.5, Qwen3), Mistral AI
/// 2025 (Magistral), MiniMax 2025 (M2), Moonshot AI 2025 (Kimi K2), Inclusion AI 2025 (Ling), ByteDance 2025
/// (Seed-OSS). Weights of the losses of uneven use are those of their pre-training, where they are published.
namespace hcclsim::models::sizes {

using zoo::Decoder;

constexpr std::uint32_t usual_sequence = 4096;

constexpr Decoder llama2(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads, std::uint32_t kv_heads,
                         std::uint32_t feed_forward, std::uint32_t vocabulary = 32000) {
  Decoder sizes;
  sizes.layers = layers;
  sizes.hidden = hidden;
  sizes.heads = heads;
  sizes.kv_heads = kv_heads;
  sizes.feed_forward = feed_forward;
  sizes.vocabulary = vocabulary;
  sizes.sequence = usual_sequence;
  return sizes;
}
inline constexpr Decoder llama2_7b = llama2(32, 4096, 32, 32, 11008);
inline constexpr Decoder llama2_13b = llama2(40, 5120, 40, 40, 13824);
inline constexpr Decoder llama2_70b = llama2(80, 8192, 64, 8, 28672);
inline constexpr Decoder internlm25_7b = llama2(32, 4096, 32, 8, 14336, 92544);

constexpr Decoder llama3(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads, std::uint32_t feed_forward,
                         bool tied = false) {
  Decoder sizes = llama2(layers, hidden, heads, 8, feed_forward, 128256);
  sizes.sequence = 8192;
  sizes.tied = tied;
  return sizes;
}
inline constexpr Decoder llama3_8b = llama3(32, 4096, 32, 14336);
inline constexpr Decoder llama3_70b = llama3(80, 8192, 64, 28672);
inline constexpr Decoder llama32_1b = llama3(16, 2048, 32, 8192, true);
inline constexpr Decoder llama32_3b = llama3(28, 3072, 24, 8192, true);

/// Heads of 128 features, whatever a row has.
constexpr Decoder with_heads_of_128(Decoder sizes) {
  sizes.head_width = 128;
  return sizes;
}
constexpr Decoder with_qkv_bias(Decoder sizes) {
  sizes.qkv_bias = true;
  return sizes;
}
constexpr Decoder with_post_norms(Decoder sizes) {
  sizes.post_norms = true;
  return sizes;
}
/// Positions turn half of the features of a head.
constexpr Decoder half_turned(Decoder sizes) {
  sizes.turned = sizes.width_of_head() / 2;
  return sizes;
}
inline constexpr Decoder magistral_24b = with_heads_of_128(llama2(40, 5120, 32, 8, 32768, 131072));
inline constexpr Decoder seed_oss_36b = with_qkv_bias(with_heads_of_128(llama2(64, 5120, 80, 8, 27648, 155136)));
inline constexpr Decoder chatglm3_6b = half_turned(with_qkv_bias(llama2(28, 4096, 32, 2, 13696, 65024)));
inline constexpr Decoder glm4_9b = half_turned(with_qkv_bias(llama2(40, 4096, 32, 2, 13696, 151552)));
inline constexpr Decoder glm4_9b_0414 = with_post_norms(glm4_9b);
inline constexpr Decoder glm4_32b_0414 =
    half_turned(with_post_norms(with_heads_of_128(llama2(61, 6144, 48, 2, 23040, 151552))));

constexpr Decoder gemma2(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads, std::uint32_t kv_heads,
                         std::uint32_t head_width, std::uint32_t feed_forward) {
  Decoder sizes = with_post_norms(llama2(layers, hidden, heads, kv_heads, feed_forward, 256000));
  sizes.head_width = head_width;
  sizes.half = HalfKind::geglu;
  sizes.tied = true;
  return sizes;
}
inline constexpr Decoder gemma2_9b = gemma2(42, 3584, 16, 8, 256, 14336);
inline constexpr Decoder gemma2_27b = gemma2(46, 4608, 32, 16, 128, 36864);

inline constexpr Decoder qwen25_7b = with_qkv_bias(llama2(28, 3584, 28, 4, 18944, 152064));
inline constexpr Decoder qwen25_72b = with_qkv_bias(llama2(80, 8192, 64, 8, 29568, 152064));

constexpr Decoder qwen3(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads, std::uint32_t feed_forward,
                        bool tied = false) {
  Decoder sizes = with_heads_of_128(llama2(layers, hidden, heads, 8, feed_forward, 151936));
  sizes.qk_norm = QkNorm::heads;
  sizes.tied = tied;
  return sizes;
}
inline constexpr Decoder qwen3_06b = qwen3(28, 1024, 16, 3072, true);
inline constexpr Decoder qwen3_17b = qwen3(28, 2048, 16, 6144, true);
inline constexpr Decoder qwen3_4b = qwen3(36, 2560, 32, 9728, true);
inline constexpr Decoder qwen3_8b = qwen3(36, 4096, 32, 12288);
inline constexpr Decoder qwen3_14b = qwen3(40, 5120, 40, 17408);
inline constexpr Decoder qwen3_32b = qwen3(64, 5120, 64, 25600);

/// Experts of which a token is sent to so many, by gates that add up to 1.
constexpr zoo::Experts experts_of(std::uint32_t count, std::uint32_t chosen, std::uint32_t feed_forward,
                                  float balance_weight = 0) {
  return {.count = count,
          .feed_forward = feed_forward,
          .route = {.top_k = chosen, .normalised = true, .balance_weight = balance_weight}};
}
constexpr Decoder with_experts(Decoder sizes, const zoo::Experts& experts) {
  sizes.experts = experts;
  return sizes;
}
/// An expert beside them that every token goes to, and layers in front that have none.
constexpr zoo::Experts with_shared(zoo::Experts experts, std::uint32_t width, std::uint32_t dense_layers) {
  experts.shared_width = width;
  experts.dense_layers = dense_layers;
  return experts;
}
constexpr zoo::Experts with_names(zoo::Experts experts, const zoo::ExpertNames& names) {
  experts.names = names;
  return experts;
}
constexpr zoo::ExpertNames mixtral_names{.half = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"};

constexpr Decoder qwen3_moe(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads, std::uint32_t kv_heads,
                            const zoo::Experts& experts) {
  Decoder sizes = with_experts(qwen3(layers, hidden, heads, experts.feed_forward), experts);
  sizes.kv_heads = kv_heads;
  return sizes;
}
inline constexpr Decoder qwen3_30b = qwen3_moe(48, 2048, 32, 4, experts_of(128, 8, 768, 0.001F));
inline constexpr Decoder qwen3_235b = qwen3_moe(94, 4096, 64, 4, experts_of(128, 8, 1536, 0.001F));
inline constexpr Decoder qwen3_480b = qwen3_moe(62, 6144, 96, 8, experts_of(160, 8, 2560, 0.001F));
inline constexpr Decoder qwen3_next = [] {
  zoo::Experts experts = with_shared(experts_of(512, 10, 512, 0.001F), 512, 0);
  experts.shared_gate = true;
  Decoder sizes = qwen3_moe(48, 2048, 16, 2, experts);
  sizes.head_width = 256;
  sizes.turned = 64;
  sizes.attention_gate = true;
  sizes.delta = {.interval = 4, .key_heads = 16, .key_width = 128, .value_heads = 32, .value_width = 128};
  return sizes;
}();
inline constexpr Decoder qwen2_57b = [] {
  zoo::Experts experts = with_shared(experts_of(64, 8, 2560, 0.001F), 20480, 0);
  experts.route.normalised = false;
  experts.shared_gate = true;
  return with_experts(with_qkv_bias(llama2(28, 3584, 28, 4, 18944, 151936)), experts);
}();
inline constexpr Decoder mixtral_8x7b =
    with_experts(llama2(32, 4096, 32, 8, 14336), with_names(experts_of(8, 2, 14336, 0.02F), mixtral_names));
inline constexpr Decoder phi35_moe = [] {
  Decoder sizes = with_experts(with_qkv_bias(llama2(32, 4096, 32, 8, 6400, 32064)),
                               with_names(experts_of(16, 2, 6400), mixtral_names));
  sizes.norm = NormKind::layer;
  sizes.projection_bias = sizes.logits_bias = true;
  return sizes;
}();
inline constexpr Decoder minimax_m2 = [] {
  Decoder sizes = with_experts(with_heads_of_128(llama2(62, 3072, 48, 8, 1536, 200064)),
                               with_names(experts_of(256, 8, 1536), mixtral_names));
  sizes.qk_norm = QkNorm::rows;
  sizes.turned = 64;
  return sizes;
}();

constexpr Decoder glm45_of(std::uint32_t layers, std::uint32_t hidden, std::uint32_t feed_forward,
                           const zoo::Experts& experts) {
  const Decoder sizes = with_heads_of_128(llama2(layers, hidden, 96, 8, feed_forward, 151552));
  return with_experts(half_turned(with_qkv_bias(sizes)), experts);
}
inline constexpr Decoder glm45_air = glm45_of(46, 4096, 10944, with_shared(experts_of(128, 8, 1408), 1408, 1));
inline constexpr Decoder glm45 = [] {
  Decoder sizes = glm45_of(92, 5120, 12288, with_shared(experts_of(160, 8, 1536), 1536, 3));
  sizes.qk_norm = QkNorm::heads;
  return sizes;
}();

constexpr Decoder ling(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads, std::uint32_t kv_heads,
                       std::uint32_t feed_forward, std::uint32_t expert_width, std::uint32_t dense_layers) {
  Decoder sizes = half_turned(with_heads_of_128(llama2(layers, hidden, heads, kv_heads, feed_forward, 157184)));
  sizes.qk_norm = QkNorm::heads;
  return with_experts(sizes, with_shared(experts_of(256, 8, expert_width), expert_width, dense_layers));
}
inline constexpr Decoder ling_mini = ling(20, 2048, 16, 4, 5120, 512, 1);
inline constexpr Decoder ling_flash = ling(32, 4096, 32, 4, 9216, 1024, 1);
inline constexpr Decoder ling_1t = ling(80, 8192, 64, 8, 18432, 2048, 4);

constexpr Decoder latent(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads, std::uint32_t feed_forward,
                         std::uint32_t vocabulary, std::uint32_t query_rank, const zoo::Experts& experts) {
  Decoder sizes =
      with_experts(with_heads_of_128(llama2(layers, hidden, heads, heads, feed_forward, vocabulary)), experts);
  sizes.qk_norm = QkNorm::heads;
  sizes.latent = {.query_rank = query_rank, .rank = 512, .turned = 64, .value_width = 128};
  return sizes;
}
inline constexpr Decoder deepseek_v2_lite = [] {
  zoo::Experts experts = with_shared(experts_of(64, 6, 1408, 0.001F), 2 * 1408, 1);
  experts.route.normalised = false;
  return latent(27, 2048, 16, 10944, 102400, 0, experts);
}();
inline constexpr Decoder deepseek_v3 =
    latent(61, 7168, 128, 18432, 129280, 1536, with_shared(experts_of(256, 8, 2048, 0.0001F), 2048, 3));
constexpr Decoder with_indexer(Decoder sizes, const zoo::Indexer& indexer) {
  sizes.indexer = indexer;
  return sizes;
}
inline constexpr Decoder deepseek_v32 = with_indexer(deepseek_v3, {.heads = 64, .width = 128, .top_k = 2048});
inline constexpr Decoder glm5 = [] {
  Decoder sizes = latent(78, 6144, 64, 12288, 154880, 2048, with_shared(experts_of(256, 8, 2048), 2048, 3));
  sizes.head_width = 192;
  sizes.latent->value_width = 256;
  return with_indexer(sizes, {.heads = 32, .width = 128, .top_k = 2048});
}();
inline constexpr Decoder glm52 = [] {
  Decoder sizes = glm5;
  sizes.indexer->interval = 4;
  sizes.indexer->offset = 3;
  return sizes;
}();
inline constexpr Decoder kimi_k2 =
    latent(61, 7168, 64, 18432, 163840, 1536, with_shared(experts_of(384, 8, 2048, 0.001F), 2048, 1));

/// DeepSeek-AI 2026 (DeepSeek-V4-Flash): layers from the third one on put 4 and 128 positions together in turn.
inline constexpr Decoder deepseek_v4_flash = [] {
  Decoder sizes = with_experts(llama2(43, 4096, 64, 1, 4096, 129280), with_shared(experts_of(256, 6, 2048), 2048, 0));
  sizes.head_width = 512;
  sizes.turned = 64;
  sizes.qk_norm = QkNorm::rows;
  sizes.window = 128;
  sizes.streams = 4;
  zoo::CompressedAttention& compressed =
      sizes.compressed.emplace(zoo::CompressedAttention{.query_rank = 1024, .output_groups = 8, .output_rank = 1024});
  for (std::uint32_t layer = 2; layer < sizes.layers; ++layer) compressed.ratios.at(layer) = layer % 2 == 0 ? 4 : 128;
  return with_indexer(sizes, {.heads = 64, .width = 128, .top_k = 512});
}();

inline constexpr Decoder tiny_moe = [] {
  Decoder sizes = llama2(1, 32, 4, 4, 32, 32);
  sizes.sequence = 16;
  zoo::Experts experts = with_names(experts_of(8, 2, 32, 0.01F), mixtral_names);
  experts.capacity = 4;
  return with_experts(sizes, experts);
}();

}  // namespace hcclsim::models::sizes
