#include <fmt/format.h>

#include <utility>

#include "models/zoo/decoder_layers.hpp"

/// LLaMA, Qwen and their like. Parameter names are those of the "transformers" package.
namespace hcclsim::models::zoo {

OperatorId append_table(GraphBuilder& builder, const Transformer& sizes) {
  return builder.token_embedding("model.embed_tokens", GraphBuilder::input(), sizes.vocabulary, sizes.hidden);
}

OperatorId append_logits(GraphBuilder& builder, const Transformer& sizes, OperatorId table, OperatorId x) {
  const OperatorId normed = builder.rms_norm("model.norm", x);
  return sizes.tied ? builder.tied_linear("lm_head", normed, table, false)
                    : builder.linear("lm_head", normed, sizes.vocabulary, false);
}

OperatorId append_rotary_attention(GraphBuilder& builder, const std::string& name, const Transformer& sizes,
                                   OperatorId x) {
  const std::string self = name + ".self_attn";
  const std::uint32_t width = sizes.width_of_head();
  const OperatorId normed = builder.rms_norm(name + ".input_layernorm", x);
  OperatorId query = builder.linear(self + ".q_proj", normed, width * sizes.heads, sizes.qkv_bias);
  OperatorId key = builder.linear(self + ".k_proj", normed, width * sizes.kv_heads, sizes.qkv_bias);
  const OperatorId value = builder.linear(self + ".v_proj", normed, width * sizes.kv_heads, sizes.qkv_bias);
  if (sizes.qk_norm) {
    query = builder.rms_norm(self + ".q_norm", query, sizes.heads);
    key = builder.rms_norm(self + ".k_norm", key, sizes.kv_heads);
  }
  query = builder.rotary(self + ".q_rotary", query, sizes.heads);
  key = builder.rotary(self + ".k_rotary", key, sizes.kv_heads);
  const AttentionOptions options{.heads = sizes.heads, .kv_heads = sizes.kv_heads, .causal = true};
  const OperatorId context = builder.attention(self + ".core", query, key, value, options);
  return builder.add(name + ".add_1", builder.linear(self + ".o_proj", context, sizes.hidden, false), x);
}

OperatorId append_gated_mlp(GraphBuilder& builder, const std::string& name, std::uint32_t hidden,
                            std::uint32_t features, OperatorId x) {
  const OperatorId gate = builder.linear(name + ".gate_proj", x, features, false);
  const OperatorId up = builder.linear(name + ".up_proj", x, features, false);
  return builder.linear(name + ".down_proj", builder.swiglu(name + ".act", gate, up), hidden, false);
}

Graph llama(std::string title, const Transformer& sizes) {
  GraphBuilder builder = GraphBuilder::of_tokens(std::move(title), sizes.batch, sizes.sequence);
  const OperatorId table = append_table(builder, sizes);
  OperatorId x = table;
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    builder.begin_layer();
    const std::string name = fmt::format("model.layers.{}", layer);
    x = append_rotary_attention(builder, name, sizes, x);
    const OperatorId normed = builder.rms_norm(name + ".post_attention_layernorm", x);
    x = builder.add(name + ".add_2", append_gated_mlp(builder, name + ".mlp", sizes.hidden, sizes.feed_forward, normed),
                    x);
  }
  builder.end_layers();
  return std::move(builder).finish(append_logits(builder, sizes, table, x));
}

}  // namespace hcclsim::models::zoo
