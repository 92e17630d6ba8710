#include <cstdint>
#include <utility>
#include <vector>

#include "models/zoo/decoder_layers.hpp"

// Layers of DeepSeek-V4: compressed attention, and residual rows of several streams.
namespace hcclsim::models::zoo {
namespace {

/// Work on rows by themselves, `forward` operations each; backward twice as many.
VectorWork work_of_rows(std::uint64_t rows, std::uint64_t forward) {
  return {.forward = rows * forward, .backward = 2 * rows * forward, .keeps_inputs = true, .by_rows = true};
}

}  // namespace

OperatorId DecoderLayers::append_compressor(const std::string& name, std::uint32_t ratio, std::uint32_t features,
                                            OperatorId x) {
  // Where windows overlap, as with few positions, both halves have features of their own.
  const std::uint32_t halves = ratio == CompressedAttention::indexed_ratio ? 2 : 1;
  const OperatorId values = builder_.linear(name + ".wkv", x, halves * features, false);
  const OperatorId gates = builder_.linear(name + ".wgate", x, halves * features, false);
  const std::uint32_t rows = builder_.shape(x).batch();
  // Per number: a position is added, a softmax over the window, a weighted sum.
  const VectorWork work = work_of_rows(rows, std::uint64_t{8} * halves * features);
  const std::uint32_t kept = (features + ratio - 1) / ratio;
  const OperatorId made = builder_.vector_work(name + ".pool", {values, gates}, {rows, kept}, work);
  builder_.add_weight(made, {ratio, halves * features});  // of the positions in a window
  builder_.add_weight(made, {features});                  // of the norm
  return made;
}

OperatorId DecoderLayers::append_compressed_indexer(const std::string& name, std::uint32_t ratio, OperatorId x,
                                                    OperatorId query_row) {
  const Indexer& indexer = *sizes_.indexer;
  const OperatorId query = builder_.linear(name + ".wq_b", query_row, indexer.heads * indexer.width, false);
  const OperatorId weight = builder_.linear(name + ".weights_proj", x, indexer.heads, false);
  const OperatorId key = append_compressor(name + ".compressor", ratio, indexer.width, x);
  const std::uint32_t rows = builder_.shape(x).batch();
  const std::uint64_t length = sizes_.sequence;
  // Every position with the rows that stand for those before it, over all heads; half of them in the mean.
  const MatrixProduct scores{.m = length,
                             .n = (length / ratio + 1) / 2,
                             .k = std::uint64_t{indexer.heads} * indexer.width,
                             .groups = rows / length};
  const OperatorId chosen = builder_.matrix_product(name + ".scores", {query, key}, {rows, indexer.top_k}, scores);
  const VectorWork loss{.forward = std::uint64_t{rows} * indexer.top_k * indexer.heads,
                        .backward = std::uint64_t{rows} * indexer.top_k * indexer.heads,
                        .by_rows = true};
  return builder_.vector_work(name + ".loss", {chosen, weight}, {rows, indexer.top_k}, loss);
}

OperatorId DecoderLayers::append_compressed_attention(const std::string& self, std::uint32_t layer, OperatorId x) {
  const CompressedAttention& attention = *sizes_.compressed;
  const std::uint32_t width = sizes_.width_of_head();
  const std::uint32_t rows = builder_.shape(x).batch();
  const std::uint32_t ratio = attention.ratio(layer);
  const OperatorId query_row =
      builder_.rms_norm(self + ".q_norm", builder_.linear(self + ".wq_a", x, attention.query_rank, false));
  const OperatorId query =
      turn(self + ".q_rotary", builder_.linear(self + ".wq_b", query_row, sizes_.heads * width, false), sizes_.heads,
           sizes_.turned);
  const OperatorId own =
      turn(self + ".kv_rotary", builder_.rms_norm(self + ".kv_norm", builder_.linear(self + ".wkv", x, width, false)),
           1, sizes_.turned);
  std::vector<Value> met{own};
  if (ratio > 0) met.emplace_back(append_compressor(self + ".compressor", ratio, width, x));
  if (ratio == CompressedAttention::indexed_ratio && sizes_.indexer.has_value())
    met.emplace_back(append_compressed_indexer(self + ".indexer", ratio, x, query_row));
  // All that queries meet is one tensor; each head has a score of its own for nothing.
  const OperatorId keys =
      builder_.vector_work(self + ".keys", std::move(met), {rows, width}, work_of_rows(rows, width));
  builder_.add_weight(keys, {sizes_.heads});
  const OperatorId context = builder_.attention(
      self + ".core", query, keys, keys,
      {.heads = sizes_.heads, .kv_heads = 1, .causal = true, .drop_rate = sizes_.drop_rate, .met = met_});
  const std::uint32_t groups = attention.output_groups;
  const std::uint32_t of_group = sizes_.heads / groups * width;
  const OperatorId narrow =
      builder_.matrix_product(self + ".wo_a", {context}, {rows, groups * attention.output_rank},
                              {.m = rows, .n = attention.output_rank, .k = of_group, .groups = groups}, true);
  builder_.add_weight(narrow, {groups, of_group, attention.output_rank});
  return builder_.linear(self + ".wo_b", narrow, sizes_.hidden, false);
}

OperatorId DecoderLayers::enter_streams(const std::string& name, OperatorId x) {
  if (sizes_.streams == 1) return x;
  const std::uint32_t rows = builder_.shape(x).batch();
  const std::uint32_t features = sizes_.streams * sizes_.hidden;
  return builder_.vector_work(
      name, {x}, {rows, features},
      {.forward = std::uint64_t{rows} * features, .backward = std::uint64_t{rows} * features, .by_rows = true});
}

OperatorId DecoderLayers::leave_streams(const std::string& name, OperatorId x, bool chosen) {
  if (sizes_.streams == 1) return x;
  const std::uint32_t rows = builder_.shape(x).batch();
  const VectorWork work = work_of_rows(rows, std::uint64_t{2} * sizes_.streams * sizes_.hidden);
  if (!chosen) return builder_.vector_work(name, {x}, {rows, sizes_.hidden}, work);
  const OperatorId weights = builder_.linear(name + ".fn", x, sizes_.streams, true);
  const OperatorId made = builder_.vector_work(name, {x, weights}, {rows, sizes_.hidden}, work);
  builder_.add_weight(made, {1});
  return made;
}

DecoderLayers::Mixed DecoderLayers::read_streams(const std::string& name, OperatorId x) {
  constexpr std::uint64_t rounds = 20;  // in which rows and columns of the mixing matrix are made to add up to 1
  constexpr std::uint64_t per_number = 4;
  const std::uint64_t streams = sizes_.streams;
  const std::uint32_t rows = builder_.shape(x).batch();
  const OperatorId weights = builder_.linear(name + ".fn", x, (2 + sizes_.streams) * sizes_.streams, true);
  const OperatorId row =
      builder_.vector_work(name + ".pre", {x, weights}, {rows, sizes_.hidden},
                           work_of_rows(rows, rounds * per_number * streams * streams + 2 * streams * sizes_.hidden));
  builder_.add_weight(row, {3});
  return {row, weights};
}

OperatorId DecoderLayers::write_streams(const std::string& name, const Mixed& mixed, OperatorId half, OperatorId x) {
  const std::uint64_t streams = sizes_.streams;
  const std::uint32_t rows = builder_.shape(x).batch();
  return builder_.vector_work(name + ".post", {x, half, mixed.weights}, {rows, sizes_.streams * sizes_.hidden},
                              work_of_rows(rows, 2 * (streams * streams + streams) * sizes_.hidden));
}

OperatorId DecoderLayers::append_in_streams(const std::string& name, std::uint32_t layer, OperatorId x,
                                            bool with_experts) {
  const Mixed first = read_streams(name + ".attn_hc", x);
  const OperatorId mixer = append_mixer(name, layer, norm(name + ".input_layernorm", first.row));
  x = write_streams(name + ".attn_hc", first, mixer, x);
  const Mixed second = read_streams(name + ".ffn_hc", x);
  const OperatorId half = append_second(name, norm(name + ".post_attention_layernorm", second.row), with_experts);
  return write_streams(name + ".ffn_hc", second, half, x);
}

}  // namespace hcclsim::models::zoo
