#include "models/zoo/chosen_sizes.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

namespace hcclsim::models::zoo {
namespace {

constexpr std::uint32_t max_layers = 10000;
constexpr std::uint32_t max_sequence = 1 << 20;
/// Those that a decoder without experts is given.
constexpr Experts new_experts{.count = 1, .route = {.top_k = 2, .normalised = true}};

template <class T>
void choose(T& size, const std::optional<T>& chosen) {
  if (chosen.has_value()) size = *chosen;
}

/// Features that keep their ratio to those of a row.
std::uint32_t in_ratio(std::uint64_t features, std::uint64_t hidden, std::uint64_t published_hidden) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(features * hidden / published_hidden, most));
}

/// Those that all transformers have. A table of positions has a row for each.
void choose_sizes(std::string_view network, const ModelOptions& options, bool has_table, Transformer& sizes) {
  const std::uint32_t hidden = options.hidden.value_or(sizes.hidden);
  if (hidden == 0) bad_input("model", "{}: a row must have features; give another --hidden", network);
  sizes.feed_forward = options.feed_forward.value_or(in_ratio(sizes.feed_forward, hidden, sizes.hidden));
  sizes.hidden = hidden;
  choose(sizes.heads, options.heads);
  choose(sizes.layers, options.layers);
  choose(sizes.vocabulary, options.vocabulary);
  choose(sizes.sequence, options.sequence);
  if (options.positions.has_value() && !has_table) {
    bad_input("model", "{} has no table of positions: --positions does not go with it", network);
  }
  if (options.positions.has_value() && *options.positions < sizes.sequence) {
    bad_input("model", "{}: a table for {} positions does not hold sequences of {}; give --positions or --sequence",
              network, *options.positions, sizes.sequence);
  }
  sizes.positions = options.positions.value_or(std::max(sizes.positions, sizes.sequence));
  if (options.drop_rate.has_value()) sizes.drop_rate = static_cast<float>(*options.drop_rate);
  sizes.batch = options.batch;
  if (sizes.layers == 0 || sizes.layers > max_layers) {
    bad_input("model", "{}: layers must be 1 to {}, got {}", network, max_layers, sizes.layers);
  }
  if (sizes.sequence == 0 || sizes.sequence > max_sequence) {
    bad_input("model", "{}: a sequence must have 1 to {} tokens, got {}", network, max_sequence, sizes.sequence);
  }
}

void choose_heads(std::string_view network, const ModelOptions& options, const Decoder& published, Decoder& sizes) {
  const bool as_published = sizes.hidden == published.hidden && sizes.heads == published.heads;
  const bool latent = published.latent.has_value() || options.kv_rank.has_value();
  sizes.head_width = options.head_width.value_or(as_published || latent ? published.head_width : 0);
  if (sizes.heads == 0 || (sizes.hidden % sizes.heads != 0 && sizes.head_width == 0)) {
    bad_input("model", "{}: {} heads do not divide {} features; give --hidden and --heads that fit, or --head-width",
              network, sizes.heads, sizes.hidden);
  }
  const bool groups = published.kv_heads < published.heads;
  sizes.kv_heads = options.kv_heads.value_or(groups ? std::min(published.kv_heads, sizes.heads) : sizes.heads);
  if (sizes.kv_heads == 0 || sizes.heads % sizes.kv_heads != 0) {
    bad_input("model", "{}: {} heads cannot share {} heads of keys and values; give a multiple", network, sizes.heads,
              sizes.kv_heads);
  }
  choose(sizes.turned, options.turned);
  if (!as_published && !options.turned.has_value()) sizes.turned = 0;
  if (latent || sizes.position != PositionKind::rotary) return;
  const std::uint32_t width = sizes.width_of_head();
  const std::uint32_t turned = sizes.turned == 0 ? width : sizes.turned;
  if (turned % 2 != 0 || turned > width) {
    bad_input("model",
              "{}: positions turn pairs of features, and {} of a head of {} cannot be turned; give another "
              "--head-width or --rotary-width",
              network, turned, width);
  }
}

/// Latent attention, if the network has it or its rank is chosen.
void choose_latent_attention(std::string_view network, const ModelOptions& options, Decoder& sizes) {
  if (sizes.compressed.has_value()) return;
  if (!sizes.latent.has_value() && !options.kv_rank.has_value()) {
    if (!options.query_rank.has_value() && !options.value_width.has_value()) return;
    bad_input("model", "{}: --q-rank and --value-width are of latent attention, which --kv-rank switches on", network);
  }
  if (options.kv_heads.has_value() && *options.kv_heads != sizes.heads) {
    bad_input("model", "{}: heads of latent attention do not share keys and values; leave --kv-heads out", network);
  }
  const bool is_new = !sizes.latent.has_value();
  LatentAttention& latent = is_new ? sizes.latent.emplace() : *sizes.latent;
  if (is_new) latent.value_width = latent.turned = sizes.width_of_head();
  choose(latent.rank, options.kv_rank);
  choose(latent.query_rank, options.query_rank);
  choose(latent.value_width, options.value_width);
  choose(latent.turned, options.turned);
  sizes.qk_norm = options.qk_norm.value_or(is_new ? QkNorm::heads : sizes.qk_norm);
  sizes.kv_heads = sizes.heads;
}

/// Compressed attention, if the network has it or its ratios are chosen.
void choose_compressed_attention(std::string_view network, const ModelOptions& options, Decoder& sizes) {
  if (!sizes.compressed.has_value() && !options.compress_ratios.has_value()) {
    if (!options.output_groups.has_value() && !options.output_rank.has_value()) return;
    bad_input("model",
              "{}: --output-groups and --output-rank are of compressed attention, which --compress-ratios "
              "switches on",
              network);
  }
  if (options.kv_rank.has_value() || options.value_width.has_value() || options.qk_norm.has_value()) {
    bad_input("model",
              "{}: compressed attention has one head of keys and values, with norms; leave --kv-rank, "
              "--value-width and --qk-norm out",
              network);
  }
  CompressedAttention& compressed =
      sizes.compressed.has_value()
          ? *sizes.compressed
          : sizes.compressed.emplace(CompressedAttention{.query_rank = sizes.hidden, .output_rank = sizes.hidden});
  choose(compressed.query_rank, options.query_rank);
  choose(compressed.output_groups, options.output_groups);
  choose(compressed.output_rank, options.output_rank);
  sizes.kv_heads = 1;
  sizes.qk_norm = QkNorm::rows;
  if (compressed.query_rank == 0 || sizes.heads % compressed.output_groups != 0) {
    bad_input("model",
              "{}: compressed attention has a row for queries and groups of as many heads each; give --q-rank "
              "and --output-groups that fit {} heads",
              network, sizes.heads);
  }
  if (!options.compress_ratios.has_value()) return;
  compressed.ratios = {};
  std::size_t layer = 0;
  for (const std::string_view item : split_trimmed(*options.compress_ratios, ',')) {
    const auto ratio = parse_number<std::uint32_t>(item);
    if (!ratio.has_value() || *ratio > sizes.sequence || layer == CompressedAttention::most_ratios) {
      bad_input("model",
                "{}: --compress-ratios {}: '{}' cannot be item {}; give at most {} numbers of positions up to "
                "those of a sequence",
                network, *options.compress_ratios, item, layer + 1, CompressedAttention::most_ratios);
    }
    compressed.ratios.at(layer++) = *ratio;
  }
}

/// Layers with a gated delta net.
void choose_delta_net(std::string_view network, const ModelOptions& options, Decoder& sizes) {
  constexpr DeltaNet usual{.key_heads = 16, .key_width = 128, .value_heads = 32, .value_width = 128};  // Qwen3-Next
  const bool sized =
      options.delta_key_heads || options.delta_key_width || options.delta_value_heads || options.delta_value_width;
  if (sizes.delta.interval == 0 && options.delta_interval.value_or(0) == 0) {
    if (!sized) return;
    bad_input("model", "{} has no gated delta nets; --full-attention-interval gives it some", network);
  }
  if (sizes.delta.interval == 0) sizes.delta = usual;
  choose(sizes.delta.interval, options.delta_interval);
  choose(sizes.delta.key_heads, options.delta_key_heads);
  choose(sizes.delta.key_width, options.delta_key_width);
  choose(sizes.delta.value_heads, options.delta_value_heads);
  choose(sizes.delta.value_width, options.delta_value_width);
}

/// An indexer of latent attention, if the network has one or its number of keys is chosen.
void choose_indexer(std::string_view network, const ModelOptions& options, Decoder& sizes) {
  constexpr Indexer usual{.heads = 64, .width = 128};  // as DeepSeek has them
  if (!sizes.indexer.has_value() && !options.index_top_k.has_value()) {
    if (!options.index_heads && !options.index_width && !options.index_interval && !options.index_offset) return;
    bad_input("model", "{} has no indexer; --index-top-k gives it one", network);
  }
  const bool has_row = sizes.compressed.has_value() || (sizes.latent.has_value() && sizes.latent->query_rank > 0);
  if (!has_row) {
    bad_input("model", "{}: an indexer is of latent attention with a row for queries: give --kv-rank and --q-rank",
              network);
  }
  Indexer& indexer = sizes.indexer.has_value() ? *sizes.indexer : sizes.indexer.emplace(usual);
  choose(indexer.top_k, options.index_top_k);
  choose(indexer.heads, options.index_heads);
  choose(indexer.width, options.index_width);
  choose(indexer.interval, options.index_interval);
  choose(indexer.offset, options.index_offset);
}

/// Experts, if the network has them or their number is chosen.
void choose_experts(std::string_view network, const ModelOptions& options, std::uint32_t published_hidden,
                    Decoder& sizes) {
  const bool of_experts = options.chosen_experts || options.expert_width || options.shared_width ||
                          options.shared_gate || options.dense_layers || options.expert_interval ||
                          options.idle_experts || options.capacity || options.capacity_of_parts || options.dropless;
  if (!sizes.experts.has_value() && !options.experts.has_value()) {
    if (!of_experts) return;
    bad_input("model", "{} has no experts; --experts gives it some", network);
  }
  Experts& experts = sizes.experts.has_value() ? *sizes.experts : sizes.experts.emplace(new_experts);
  const std::uint32_t kept =
      experts.feed_forward == 0 ? sizes.feed_forward : in_ratio(experts.feed_forward, sizes.hidden, published_hidden);
  const bool has_dense =
      options.dense_layers.value_or(experts.dense_layers) > 0 || options.expert_interval.value_or(experts.interval) > 1;
  experts.feed_forward = options.expert_width.value_or(has_dense ? kept : options.feed_forward.value_or(kept));
  experts.shared_width = options.shared_width.value_or(in_ratio(experts.shared_width, sizes.hidden, published_hidden));
  choose(experts.count, options.experts);
  choose(experts.route.top_k, options.chosen_experts);
  choose(experts.shared_gate, options.shared_gate);
  choose(experts.dense_layers, options.dense_layers);
  choose(experts.interval, options.expert_interval);
  choose(experts.idle, options.idle_experts);
  if (experts.route.top_k > experts.count) {
    bad_input("model", "{}: a token cannot be sent to {} of {} experts; give --moe-top-k and --experts that fit",
              network, experts.route.top_k, experts.count);
  }
  if (options.capacity.has_value() && options.dropless) {
    bad_input("model", "{}: experts have a capacity or are dropless; give one of them", network);
  }
  choose(experts.capacity, options.capacity);
  choose(experts.of_parts, options.capacity_of_parts);
  experts.dropless = options.dropless;
  if (experts.dropless) experts.capacity = 1;
}

/// Lengths of documents, at least 1 each.
std::vector<std::uint64_t> lengths_of(const std::string& text) {
  const bool listed = !text.empty() && text.find_first_not_of("0123456789, ") == std::string::npos;
  const std::string content = listed ? text : read_text_file(text, "model");
  std::vector<std::uint64_t> lengths;
  for (const std::string_view item : split_trimmed(content, listed ? ',' : '\n')) {
    if (item.empty()) continue;
    const std::uint64_t length = parse_number<std::uint32_t>(item).value_or(0);
    if (length == 0) bad_input("model", "{}: '{}' is no length of a document; give tokens from 1", text, item);
    lengths.push_back(length);
  }
  if (lengths.empty()) bad_input("model", "{}: no length of a document", text);
  return lengths;
}

/// Of the pairs of positions of sequences, the part inside of documents: these follow each other again and again over
/// as many sequences as there are lengths, and the last one of a sequence is cut.
double pairs_of_documents(const std::vector<std::uint64_t>& lengths, std::uint64_t sequence) {
  double inside = 0;
  std::size_t next = 0;
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    for (std::uint64_t left = sequence; left > 0;) {
      const std::uint64_t length = std::min(left, lengths[next++ % lengths.size()]);
      inside += static_cast<double>(length) * static_cast<double>(length);
      left -= length;
    }
  }
  return inside / (static_cast<double>(sequence) * static_cast<double>(sequence) * static_cast<double>(lengths.size()));
}

}  // namespace

Transformer chosen_sizes(std::string_view network, const ModelOptions& options, Transformer published) {
  choose_sizes(network, options, published.positions > 0, published);
  if (published.heads == 0 || published.hidden % published.heads != 0) {
    bad_input("model", "{}: {} heads do not divide {} features; give --hidden and --heads that fit", network,
              published.heads, published.hidden);
  }
  published.kv_heads = published.heads;
  return published;
}

Decoder chosen_sizes(std::string_view network, const ModelOptions& options, Decoder published) {
  Decoder sizes = published;
  choose(sizes.position, options.position);
  choose_sizes(network, options, sizes.position == PositionKind::table, sizes);
  choose_heads(network, options, published, sizes);
  choose(sizes.norm, options.norm);
  choose(sizes.half, options.half);
  choose(sizes.qkv_bias, options.qkv_bias);
  choose(sizes.qk_norm, options.qk_norm);
  choose(sizes.projection_bias, options.projection_bias);
  choose(sizes.linear_bias, options.linear_bias);
  choose(sizes.logits_bias, options.logits_bias);
  choose(sizes.post_norms, options.post_norms);
  choose(sizes.tied, options.tied);
  choose(sizes.further_tokens, options.further_tokens);
  choose(sizes.window, options.window);
  choose(sizes.window_interval, options.window_interval);
  if (options.window_interval.value_or(0) > 0 && sizes.window == 0)
    bad_input("model", "{}: --window-interval is of layers with a window, which --window gives", network);
  if (options.documents.has_value()) {
    sizes.documents = pairs_of_documents(lengths_of(*options.documents), sizes.sequence);
  }
  choose_compressed_attention(network, options, sizes);
  choose(sizes.streams, options.streams);
  choose_latent_attention(network, options, sizes);
  choose(sizes.attention_gate, options.attention_gate);
  choose_delta_net(network, options, sizes);
  choose_indexer(network, options, sizes);
  choose_experts(network, options, published.hidden, sizes);
  return sizes;
}

}  // namespace hcclsim::models::zoo
