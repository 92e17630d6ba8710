#pragma once

#include <cstdint>

#include "models/zoo/networks.hpp"

/// As published: Dosovitskiy et al. 2020 (ViT), Devlin et al. 2018 (BERT), Radford et al. 2019 and Brown et al. 2020
/// (GPT-2, GPT-3; 13B with 5120 features, as 40 heads of 128 give), Zeng et al. 2021 (PanGu-α). Dropout is that of
/// their pre-training.
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

}  // namespace hcclsim::models::sizes
