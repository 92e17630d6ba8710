#include <fmt/format.h>

#include <utility>

#include "models/graph_builder.hpp"
#include "models/zoo/networks.hpp"

/// Decoders with GELU: GPT and PanGu-α. Parameter names are those of GPT-2.
namespace hcclsim::models::zoo {
namespace {

/// Names of a layer's operators: "h.0.ln_1", "h.0.attn.c_attn", "h.0.mlp.c_fc".
struct LayerNames {
  std::uint32_t layer;
  [[nodiscard]] std::string of(std::string_view name) const { return fmt::format("h.{}.{}", layer, name); }
};

/// The second half of a layer.
OperatorId append_mlp(GraphBuilder& builder, const LayerNames& names, const Transformer& sizes, OperatorId x) {
  OperatorId branch =
      builder.linear(names.of("mlp.c_fc"), builder.layer_norm(names.of("ln_2"), x), sizes.feed_forward, true);
  branch = builder.gelu(names.of("mlp.gelu"), branch);
  branch = builder.linear(names.of("mlp.c_proj"), branch, sizes.hidden, true);
  if (sizes.drop_rate > 0) branch = builder.dropout(names.of("mlp.dropout"), branch, sizes.drop_rate);
  return builder.add(names.of("add_2"), branch, x);
}

/// What comes behind the product of an attention.
OperatorId append_projection(GraphBuilder& builder, const LayerNames& names, const Transformer& sizes,
                             OperatorId context, OperatorId x) {
  OperatorId branch = builder.linear(names.of("attn.c_proj"), context, sizes.hidden, true);
  if (sizes.drop_rate > 0) branch = builder.dropout(names.of("attn.dropout"), branch, sizes.drop_rate);
  return builder.add(names.of("add_1"), branch, x);
}

AttentionOptions attention_of(const Transformer& sizes) {
  return {.heads = sizes.heads, .causal = true, .drop_rate = sizes.drop_rate};
}

OperatorId append_gpt_layer(GraphBuilder& builder, const LayerNames& names, const Transformer& sizes, OperatorId x) {
  const OperatorId qkv =
      builder.linear(names.of("attn.c_attn"), builder.layer_norm(names.of("ln_1"), x), 3 * sizes.hidden, true);
  const OperatorId context = builder.attention(names.of("attn.core"), qkv, attention_of(sizes));
  return append_mlp(builder, names, sizes, append_projection(builder, names, sizes, context, x));
}

/// PanGu's last layer: its queries are rows of a table, its keys and values those of the layers before.
OperatorId append_query_layer(GraphBuilder& builder, const LayerNames& names, const Transformer& sizes, OperatorId x) {
  const OperatorId positions = builder.position_rows("top_query", sizes.positions, sizes.hidden);
  const OperatorId normed = builder.layer_norm(names.of("ln_1"), x);
  const OperatorId query = builder.linear(names.of("attn.query"), positions, sizes.hidden, true);
  const OperatorId key = builder.linear(names.of("attn.key"), normed, sizes.hidden, true);
  const OperatorId value = builder.linear(names.of("attn.value"), normed, sizes.hidden, true);
  const OperatorId context = builder.attention(names.of("attn.core"), query, key, value, attention_of(sizes));
  return append_mlp(builder, names, sizes, append_projection(builder, names, sizes, context, x));
}

Graph decoder(std::string title, const Transformer& sizes, bool query_layer) {
  GraphBuilder builder = GraphBuilder::of_tokens(std::move(title), sizes.batch, sizes.sequence);
  const OperatorId table = builder.token_embedding("wte", GraphBuilder::input(), sizes.vocabulary, sizes.hidden);
  OperatorId x = builder.position_embedding("wpe", table, sizes.positions);
  if (sizes.drop_rate > 0) x = builder.dropout("drop", x, sizes.drop_rate);
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    builder.begin_layer();
    const LayerNames names{layer};
    const bool last = layer + 1 == sizes.layers;
    x = last && query_layer ? append_query_layer(builder, names, sizes, x) : append_gpt_layer(builder, names, sizes, x);
  }
  builder.end_layers();
  x = builder.tied_linear("head", builder.layer_norm("ln_f", x), table, false);
  return std::move(builder).finish(x);
}

}  // namespace

Graph gpt(std::string title, const Transformer& sizes) { return decoder(std::move(title), sizes, false); }

Graph pangu(std::string title, const Transformer& sizes) { return decoder(std::move(title), sizes, true); }

Graph tiny_gpt(std::string title, std::uint32_t sequences) {
  constexpr std::uint32_t length = 16;
  constexpr std::uint32_t vocabulary = 32;
  constexpr std::uint32_t features = 64;
  constexpr std::uint32_t heads = 4;
  GraphBuilder builder = GraphBuilder::of_tokens(std::move(title), sequences, length);
  OperatorId x = builder.token_embedding("wte", GraphBuilder::input(), vocabulary, features);
  x = builder.position_embedding("wpe", x);

  builder.begin_layer();
  OperatorId branch = builder.linear("c_attn", builder.layer_norm("ln_1", x), 3 * features, true);
  branch = builder.attention("attn", branch, {.heads = heads, .causal = true});
  branch = builder.linear("c_proj", branch, features, true);
  x = builder.add("add_1", branch, x);

  builder.begin_layer();
  branch = builder.linear("fc", builder.layer_norm("ln_2", x), 4 * features, true);
  branch = builder.linear("proj", builder.gelu("gelu", branch), features, true);
  x = builder.add("add_2", branch, x);

  builder.end_layers();
  x = builder.linear("head", builder.layer_norm("ln_f", x), vocabulary, false);
  return std::move(builder).finish(x);
}

}  // namespace hcclsim::models::zoo
