#include <fmt/format.h>

#include <utility>

#include "models/zoo/decoder_layers.hpp"

/// Mixtures of experts: Mixtral and DeepSeek-V2. Parameter names are those of the "transformers" package, but the
/// weights of all experts are one tensor, as grouped products take them.
namespace hcclsim::models::zoo {
namespace {

/// Names of the three projections of an expert: before the activation, beside it, and behind it.
struct ProjectionNames {
  std::string_view gate;
  std::string_view up;
  std::string_view down;
};
constexpr ProjectionNames mixtral_names{"w1", "w3", "w2"};
constexpr ProjectionNames deepseek_names{"gate_proj", "up_proj", "down_proj"};

/// What the experts make of the rows `x`; operators begin with `name` ("model.layers.0.mlp").
OperatorId append_experts(GraphBuilder& builder, const std::string& name, const ProjectionNames& names,
                          const Experts& experts, std::uint32_t sequences, OperatorId x) {
  const std::uint32_t hidden = builder.shape(x).channels();
  const OperatorId logits = builder.linear(name + ".gate", x, experts.count, false);
  const OperatorId gates = builder.route(name + ".route", logits, experts.route);
  // That of a sequence for each of them, so that samples can be shared out.
  const std::uint32_t capacity = sequences * expert_capacity(builder.shape(x).batch() / sequences, experts.count,
                                                             experts.route.top_k, experts.capacity);
  const OperatorId rows = builder.dispatch(name + ".dispatch", x, gates, capacity, experts.dropless);
  const auto linear = [&](std::string_view projection, OperatorId from, std::uint32_t features) {
    return builder.expert_linear(fmt::format("{}.experts.{}", name, projection), from, features);
  };
  const OperatorId gate = linear(names.gate, rows, experts.feed_forward);
  const OperatorId up = linear(names.up, rows, experts.feed_forward);
  const OperatorId product = builder.swiglu(name + ".experts.act", gate, up);
  return builder.combine(name + ".combine", linear(names.down, product, hidden), gates);
}

/// Keys and values of all heads come from one narrow row (Multi-head Latent Attention); positions turn features of
/// their own, which all heads of keys share. The projections that the package joins are two linear operators each.
OperatorId append_latent_attention(GraphBuilder& builder, const std::string& name, const Transformer& sizes,
                                   const LatentAttention& latent, OperatorId x) {
  const std::string self = name + ".self_attn";
  const std::uint32_t heads = sizes.heads;
  const OperatorId normed = builder.rms_norm(name + ".input_layernorm", x);
  OperatorId query = builder.linear(self + ".q_proj", normed, heads * (latent.width + latent.turned), false);
  query = builder.rotary(self + ".q_rotary", query, heads, latent.turned);
  const OperatorId narrow =
      builder.rms_norm(self + ".kv_a_layernorm", builder.linear(self + ".kv_a_proj", normed, latent.rank, false));
  OperatorId turned = builder.linear(self + ".k_rope_proj", normed, latent.turned, false);
  turned = builder.rotary(self + ".k_rotary", turned, 1);
  OperatorId key = builder.linear(self + ".k_b_proj", narrow, heads * latent.width, false);
  key = builder.join_heads(self + ".keys", key, turned, heads);
  const OperatorId value = builder.linear(self + ".v_b_proj", narrow, heads * latent.value_width, false);
  const OperatorId context =
      builder.attention(self + ".core", query, key, value, AttentionOptions{.heads = heads, .causal = true});
  return builder.add(name + ".add_1", builder.linear(self + ".o_proj", context, sizes.hidden, false), x);
}

}  // namespace

Graph mixtral(std::string title, const Transformer& sizes, const Experts& experts) {
  GraphBuilder builder = GraphBuilder::of_tokens(std::move(title), sizes.batch, sizes.sequence);
  const OperatorId table = append_table(builder, sizes);
  OperatorId x = table;
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    builder.begin_layer();
    const std::string name = fmt::format("model.layers.{}", layer);
    x = append_rotary_attention(builder, name, sizes, x);
    const OperatorId normed = builder.rms_norm(name + ".post_attention_layernorm", x);
    x = builder.add(name + ".add_2",
                    append_experts(builder, name + ".block_sparse_moe", mixtral_names, experts, sizes.batch, normed),
                    x);
  }
  builder.end_layers();
  return std::move(builder).finish(append_logits(builder, sizes, table, x));
}

Graph deepseek(std::string title, const Transformer& sizes, const LatentAttention& latent, const Experts& experts) {
  GraphBuilder builder = GraphBuilder::of_tokens(std::move(title), sizes.batch, sizes.sequence);
  const OperatorId table = append_table(builder, sizes);
  OperatorId x = table;
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    builder.begin_layer();
    const std::string name = fmt::format("model.layers.{}", layer);
    x = append_latent_attention(builder, name, sizes, latent, x);
    const OperatorId normed = builder.rms_norm(name + ".post_attention_layernorm", x);
    if (layer < experts.dense_layers) {
      const OperatorId dense = append_gated_mlp(builder, name + ".mlp", sizes.hidden, sizes.feed_forward, normed);
      x = builder.add(name + ".add_2", dense, x);
      continue;
    }
    const OperatorId routed = append_experts(builder, name + ".mlp", deepseek_names, experts, sizes.batch, normed);
    const OperatorId shared = append_gated_mlp(builder, name + ".mlp.shared_experts", sizes.hidden,
                                               experts.shared * experts.feed_forward, normed);
    x = builder.add(name + ".add_2", builder.add(name + ".mlp.add", routed, shared), x);
  }
  builder.end_layers();
  return std::move(builder).finish(append_logits(builder, sizes, table, x));
}

}  // namespace hcclsim::models::zoo
