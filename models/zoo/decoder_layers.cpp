#include "models/zoo/decoder_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace hcclsim::models::zoo {
namespace {

Activation activation_of(HalfKind half) {
  if (half == HalfKind::swiglu) return Activation::silu;
  return half == HalfKind::squared_relu ? Activation::relu : Activation::gelu;
}

bool is_gated(HalfKind half) { return half == HalfKind::swiglu || half == HalfKind::geglu; }

/// Of the pairs of positions of a causal mask, the part whose keys are among `most` for each query.
double pairs_among(double most, double length) {
  most = std::min(most, length);
  return (length * most - most * most / 2) / (length * length / 2);
}

/// Operator::met of a layer's attention.
double met_pairs(const Decoder& sizes, std::uint32_t layer) {
  const bool has_window = sizes.window > 0 && (sizes.window_interval == 0 || (layer + 1) % sizes.window_interval != 0);
  double met = sizes.documents;
  if (has_window) met = std::min(met, pairs_among(sizes.window, sizes.sequence));
  if (const auto& compressed = sizes.compressed; compressed.has_value()) {
    const std::uint32_t ratio = compressed->ratio(layer);
    const bool chosen = ratio == CompressedAttention::indexed_ratio && sizes.indexer.has_value();
    if (ratio > 0) met += pairs_among(chosen ? ratio * sizes.indexer->top_k : sizes.sequence, sizes.sequence) / ratio;
    return std::min(met, 1.0);
  }
  if (sizes.indexer.has_value()) met = std::min(met, pairs_among(sizes.indexer->top_k, sizes.sequence));
  return met;
}

/// Whether a layer, by its number from 0, chooses keys itself.
bool has_indexer(const Indexer& indexer, std::uint32_t layer) {
  return layer + 1 <= indexer.offset || (layer + 1 - indexer.offset) % indexer.interval == 0;
}

/// Work of the vector unit on rows by themselves: `forward` operations per number, `backward` for both operands.
VectorWork work_on_rows(const Shape& shape, std::uint64_t forward, std::uint64_t backward) {
  return {.forward = forward * shape.elements(),
          .backward = backward * shape.elements(),
          .keeps_inputs = true,
          .by_rows = true};
}

}  // namespace

OperatorId DecoderLayers::norm(std::string name, OperatorId x) {
  return sizes_.norm == NormKind::rms ? builder_.rms_norm(std::move(name), x) : builder_.layer_norm(std::move(name), x);
}

OperatorId DecoderLayers::add(const std::string& name, const std::string& norm_name, OperatorId half, OperatorId x) {
  if (sizes_.post_norms) half = norm(norm_name, half);
  if (sizes_.drop_rate > 0) half = builder_.dropout(name + "_dropout", half, sizes_.drop_rate);
  return builder_.add(name, half, x);
}

OperatorId DecoderLayers::append(const std::string& name, std::uint32_t layer, OperatorId x, bool with_experts) {
  met_ = met_pairs(sizes_, layer);
  if (sizes_.streams > 1) return append_in_streams(name, layer, x, with_experts);
  has_indexer_ = sizes_.indexer.has_value() && has_indexer(*sizes_.indexer, layer);
  const OperatorId normed = norm(name + ".input_layernorm", x);
  x = add(name + ".add_1", name + ".post_attention_layernorm", append_mixer(name, layer, normed), x);
  const OperatorId second =
      norm(name + (sizes_.post_norms ? ".pre_feedforward_layernorm" : ".post_attention_layernorm"), x);
  const OperatorId half = append_second(name, second, with_experts);
  return add(name + ".add_2", name + ".post_feedforward_layernorm", half, x);
}

OperatorId DecoderLayers::append_second(const std::string& name, OperatorId x, bool with_experts) {
  return with_experts ? append_mixture(name, *sizes_.experts, x) : append_half(name + ".mlp", x, sizes_.feed_forward);
}

OperatorId DecoderLayers::append_mixer(const std::string& name, std::uint32_t layer, OperatorId x) {
  const bool is_linear = sizes_.delta.interval > 0 && (layer + 1) % sizes_.delta.interval != 0;
  if (is_linear) return append_delta_net(name + ".linear_attn", sizes_.delta, x);
  const std::string self = name + ".self_attn";
  if (sizes_.compressed.has_value()) return append_compressed_attention(self, layer, x);
  return sizes_.latent.has_value() ? append_latent_attention(self, *sizes_.latent, x) : append_attention(self, x);
}

OperatorId DecoderLayers::append_delta_net(const std::string& self, const DeltaNet& net, OperatorId x) {
  constexpr std::uint64_t chunk = 64;       // positions that are computed together
  constexpr std::uint32_t convolution = 4;  // positions that its window sees
  const std::uint32_t keys = net.key_heads * net.key_width;
  const std::uint32_t values = net.value_heads * net.value_width;
  const OperatorId mixed = builder_.linear(self + ".in_proj_qkv", x, 2 * keys + values, false);
  const OperatorId gate = builder_.linear(self + ".in_proj_z", x, values, false);
  const OperatorId steps = builder_.linear(self + ".in_proj_ba", x, 2 * net.value_heads, false);
  const auto weighted = [&](std::string name, OperatorId from, std::vector<std::uint32_t> weight, std::uint64_t work) {
    const Shape& shape = builder_.shape(from);
    const VectorWork each{
        .forward = work * shape.elements(), .backward = 2 * work * shape.elements(), .keeps_inputs = true};
    const OperatorId id = builder_.vector_work(std::move(name), {from}, shape, each);
    builder_.add_weight(id, std::move(weight));
    return id;
  };
  // A multiply-add for each position of the window, and SiLU.
  const OperatorId seen = weighted(self + ".conv1d", mixed, {2 * keys + values, convolution}, 2 * convolution + 5);
  const OperatorId decays = weighted(self + ".decay", steps, {2, net.value_heads}, 8);
  const std::uint64_t per_head = 2 * chunk * (3 * std::uint64_t{net.key_width} + 2 * std::uint64_t{net.value_width}) +
                                 6 * std::uint64_t{net.key_width} * net.value_width;
  const std::uint32_t rows = builder_.shape(x).batch();
  const MatrixProduct product{.m = chunk,
                              .n = per_head / (2 * net.key_width),
                              .k = net.key_width,
                              .groups = (rows + chunk - 1) / chunk * net.value_heads};
  const OperatorId core = builder_.matrix_product(self + ".delta_rule", {seen, decays}, {rows, values}, product);
  const OperatorId normed = builder_.rms_norm(self + ".norm", core, net.value_heads);
  return builder_.linear(self + ".out_proj", builder_.swiglu(self + ".gated", gate, normed), sizes_.hidden, false);
}

OperatorId DecoderLayers::turn(std::string name, OperatorId x, std::uint32_t heads, std::uint32_t turned) {
  return sizes_.position == PositionKind::rotary ? builder_.rotary(std::move(name), x, heads, turned) : x;
}

OperatorId DecoderLayers::append_projection(const std::string& self, OperatorId context) {
  return builder_.linear(self + ".o_proj", context, sizes_.hidden, sizes_.linear_bias || sizes_.projection_bias);
}

OperatorId DecoderLayers::append_attention(const std::string& self, OperatorId x) {
  const std::uint32_t width = sizes_.width_of_head();
  const bool bias = sizes_.linear_bias || sizes_.qkv_bias;
  OperatorId query = builder_.linear(self + ".q_proj", x, width * sizes_.heads, bias);
  OperatorId key = builder_.linear(self + ".k_proj", x, width * sizes_.kv_heads, bias);
  const OperatorId value = builder_.linear(self + ".v_proj", x, width * sizes_.kv_heads, bias);
  if (sizes_.qk_norm != QkNorm::none) {
    const bool heads = sizes_.qk_norm == QkNorm::heads;
    query = builder_.rms_norm(self + ".q_norm", query, heads ? sizes_.heads : 1);
    key = builder_.rms_norm(self + ".k_norm", key, heads ? sizes_.kv_heads : 1);
  }
  query = turn(self + ".q_rotary", query, sizes_.heads, sizes_.turned);
  key = turn(self + ".k_rotary", key, sizes_.kv_heads, sizes_.turned);
  const AttentionOptions options{
      .heads = sizes_.heads, .kv_heads = sizes_.kv_heads, .causal = true, .drop_rate = sizes_.drop_rate, .met = met_};
  OperatorId context = builder_.attention(self + ".core", query, key, value, options);
  if (sizes_.attention_gate) {
    const OperatorId gate = builder_.linear(self + ".gate_proj", x, width * sizes_.heads, bias);
    context = builder_.vector_work(self + ".gated", {context, gate}, builder_.shape(context),
                                   work_on_rows(builder_.shape(context), 5, 8));
  }
  return append_projection(self, context);
}

OperatorId DecoderLayers::append_query_row(const std::string& self, const LatentAttention& latent, OperatorId x) {
  if (latent.query_rank == 0) return x;
  const OperatorId row = builder_.linear(self + ".q_a_proj", x, latent.query_rank, sizes_.qkv_bias);
  return sizes_.qk_norm == QkNorm::none ? row : builder_.rms_norm(self + ".q_a_layernorm", row);
}

OperatorId DecoderLayers::append_indexer(const std::string& self, const Indexer& indexer, OperatorId x,
                                         OperatorId query_row, OperatorId narrow) {
  const std::string name = self + ".indexer";
  const OperatorId query = builder_.linear(name + ".wq_b", query_row, indexer.heads * indexer.width, false);
  const OperatorId key = builder_.layer_norm(name + ".k_norm", builder_.linear(name + ".wk", x, indexer.width, false));
  const OperatorId weight = builder_.linear(name + ".weights_proj", x, indexer.heads, false);
  const std::uint32_t rows = builder_.shape(x).batch();
  const std::uint64_t length = sizes_.sequence;
  // Every position with those before it, over all heads; half of them in the mean.
  const MatrixProduct scores{
      .m = length, .n = (length + 1) / 2, .k = std::uint64_t{indexer.heads} * indexer.width, .groups = rows / length};
  const OperatorId chosen = builder_.matrix_product(name + ".scores", {query, key}, {rows, indexer.top_k}, scores);
  const VectorWork loss{.forward = std::uint64_t{rows} * indexer.top_k * indexer.heads,
                        .backward = std::uint64_t{rows} * indexer.top_k * indexer.heads,
                        .by_rows = true};
  return builder_.vector_work(name + ".loss", {narrow, chosen, weight}, builder_.shape(narrow), loss);
}

/// The projections that the package joins are two linear operators each.
OperatorId DecoderLayers::append_latent_attention(const std::string& self, const LatentAttention& latent,
                                                  OperatorId x) {
  const std::uint32_t heads = sizes_.heads;
  const std::uint32_t width = sizes_.width_of_head();
  const OperatorId row = append_query_row(self, latent, x);
  const OperatorId query = turn(self + ".q_rotary",
                                builder_.linear(self + (latent.query_rank > 0 ? ".q_b_proj" : ".q_proj"), row,
                                                heads * (width + latent.turned), sizes_.linear_bias),
                                heads, latent.turned);
  OperatorId narrow = builder_.linear(self + ".kv_a_proj", x, latent.rank, sizes_.qkv_bias);
  if (sizes_.qk_norm != QkNorm::none) narrow = builder_.rms_norm(self + ".kv_a_layernorm", narrow);
  if (has_indexer_) narrow = append_indexer(self, *sizes_.indexer, x, row, narrow);
  const OperatorId turned =
      turn(self + ".k_rotary", builder_.linear(self + ".k_rope_proj", x, latent.turned, sizes_.qkv_bias), 1, 0);
  const OperatorId still = builder_.linear(self + ".k_b_proj", narrow, heads * width, sizes_.linear_bias);
  const OperatorId key = builder_.join_heads(self + ".keys", still, turned, heads);
  const OperatorId value = builder_.linear(self + ".v_b_proj", narrow, heads * latent.value_width, sizes_.linear_bias);
  const AttentionOptions options{.heads = heads, .causal = true, .drop_rate = sizes_.drop_rate, .met = met_};
  return append_projection(self, builder_.attention(self + ".core", query, key, value, options));
}

OperatorId DecoderLayers::activate(std::string name, const Product& product) {
  const Activation activation = activation_of(sizes_.half);
  if (is_gated(sizes_.half)) {
    const OperatorId gate = product(true);
    return builder_.swiglu(std::move(name), gate, product(false), activation);
  }
  const OperatorId up = product(false);
  return sizes_.half == HalfKind::gelu ? builder_.gelu(std::move(name), up)
                                       : builder_.swiglu(std::move(name), up, up, activation);
}

OperatorId DecoderLayers::append_half(const std::string& name, OperatorId x, std::uint32_t features) {
  const bool bias = sizes_.linear_bias;
  const OperatorId activated = activate(name + ".act", [&](bool gate) {
    return builder_.linear(name + (gate ? ".gate_proj" : ".up_proj"), x, features, bias);
  });
  return builder_.linear(name + ".down_proj", activated, sizes_.hidden, bias);
}

OperatorId DecoderLayers::append_mixture(const std::string& name, const Experts& experts, OperatorId x) {
  const std::string half = fmt::format("{}.{}", name, experts.names.half);
  OperatorId made = append_experts(half, experts, x);
  if (experts.idle > 0) made = builder_.add(half + ".add_idle", made, append_idle_experts(half, experts, x));
  if (experts.shared_width == 0) return made;
  return builder_.add(half + ".add", made, append_shared_expert(half, experts, x));
}

OperatorId DecoderLayers::append_experts(const std::string& name, const Experts& experts, OperatorId x) {
  const OperatorId logits = builder_.linear(name + ".gate", x, experts.count, false);
  const OperatorId gates = builder_.route(name + ".route", logits, experts.route);
  // That of a sequence for each of them, so that samples can be shared out.
  const std::uint32_t capacity = sizes_.batch * expert_capacity(builder_.shape(x).batch() / sizes_.batch, experts.count,
                                                                experts.route.top_k, experts.capacity);
  const OperatorId rows = builder_.dispatch(name + ".dispatch", x, gates, capacity, experts.dropless, experts.of_parts);
  const auto linear = [&](std::string_view projection, OperatorId from, std::uint32_t features) {
    return builder_.expert_linear(fmt::format("{}.experts.{}", name, projection), from, features);
  };
  const OperatorId activated = activate(name + ".experts.act", [&](bool gate) {
    return linear(gate ? experts.names.gate : experts.names.up, rows, experts.feed_forward);
  });
  return builder_.combine(name + ".combine", linear(experts.names.down, activated, sizes_.hidden), gates);
}

OperatorId DecoderLayers::append_shared_expert(const std::string& name, const Experts& experts, OperatorId x) {
  const OperatorId made = append_half(name + ".shared_experts", x, experts.shared_width);
  if (!experts.shared_gate) return made;
  const OperatorId gate = builder_.linear(name + ".shared_expert_gate", x, 1, false);
  // A sigmoid per row, and a product per number; backward both slopes.
  return builder_.vector_work(name + ".gated", {made, gate}, builder_.shape(made),
                              work_on_rows(builder_.shape(made), 1, 3));
}

/// Gates of their own, and a product per number.
OperatorId DecoderLayers::append_idle_experts(const std::string& name, const Experts& experts, OperatorId x) {
  const OperatorId logits = builder_.linear(name + ".idle_gate", x, experts.idle, false);
  return builder_.vector_work(name + ".idle", {x, logits}, builder_.shape(x), work_on_rows(builder_.shape(x), 2, 3));
}

}  // namespace hcclsim::models::zoo
