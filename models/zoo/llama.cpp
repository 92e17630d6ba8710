#include <fmt/format.h>

#include <utility>

#include "models/graph_builder.hpp"
#include "models/zoo/networks.hpp"

/// LLaMA-2. Parameter names are those of the "transformers" package.
namespace hcclsim::models::zoo {
namespace {

OperatorId append_llama_layer(GraphBuilder& builder, const std::string& name, const Transformer& sizes, OperatorId x) {
  const std::string self = name + ".self_attn";
  const std::uint32_t kv_features = sizes.hidden / sizes.heads * sizes.kv_heads;
  const OperatorId normed = builder.rms_norm(name + ".input_layernorm", x);
  OperatorId query = builder.linear(self + ".q_proj", normed, sizes.hidden, false);
  OperatorId key = builder.linear(self + ".k_proj", normed, kv_features, false);
  const OperatorId value = builder.linear(self + ".v_proj", normed, kv_features, false);
  query = builder.rotary(self + ".q_rotary", query, sizes.heads);
  key = builder.rotary(self + ".k_rotary", key, sizes.kv_heads);
  const AttentionOptions options{.heads = sizes.heads, .kv_heads = sizes.kv_heads, .causal = true};
  const OperatorId context = builder.attention(self + ".core", query, key, value, options);
  x = builder.add(name + ".add_1", builder.linear(self + ".o_proj", context, sizes.hidden, false), x);

  const OperatorId second = builder.rms_norm(name + ".post_attention_layernorm", x);
  const OperatorId gate = builder.linear(name + ".mlp.gate_proj", second, sizes.feed_forward, false);
  const OperatorId up = builder.linear(name + ".mlp.up_proj", second, sizes.feed_forward, false);
  const OperatorId product = builder.swiglu(name + ".mlp.act", gate, up);
  return builder.add(name + ".add_2", builder.linear(name + ".mlp.down_proj", product, sizes.hidden, false), x);
}

}  // namespace

Graph llama(std::string title, const Transformer& sizes) {
  GraphBuilder builder = GraphBuilder::of_tokens(std::move(title), sizes.batch, sizes.sequence);
  OperatorId x = builder.token_embedding("model.embed_tokens", GraphBuilder::input(), sizes.vocabulary, sizes.hidden);
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    builder.begin_layer();
    x = append_llama_layer(builder, fmt::format("model.layers.{}", layer), sizes, x);
  }
  builder.end_layers();
  x = builder.linear("lm_head", builder.rms_norm("model.norm", x), sizes.vocabulary, false);
  return std::move(builder).finish(x);
}

}  // namespace hcclsim::models::zoo
