#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "models/graph_builder.hpp"
#include "models/zoo/kinds.hpp"
#include "models/zoo/networks.hpp"

/// Decoders of language models since LLaMA, as one family: which attention, which second half of a layer, which norms,
/// biases and tables a network has. Parameters have the names of the "transformers" package; weights of experts are one
/// tensor per projection, as grouped products take them.
namespace hcclsim::models::zoo {

/// Keys and values of all heads come from one narrow row (Multi-head Latent Attention, DeepSeek-AI 2024). Positions
/// turn features of their own, which all heads of keys share.
struct LatentAttention {
  std::uint32_t query_rank = 0;   ///< features of the row that queries are made of; 0: the whole row
  std::uint32_t rank = 0;         ///< features of the row that keys and values are made of
  std::uint32_t turned = 0;       ///< features of a head of queries and keys that positions turn
  std::uint32_t value_width = 0;  ///< features of a head of values

  bool operator==(const LatentAttention&) const = default;
};

/// Chooses the keys that each position of latent attention meets (DeepSeek Sparse Attention, DeepSeek-AI 2025): scores
/// of all positions by few narrow heads of queries and one of keys, in one kernel that keeps the best. A loss of its
/// own trains it.
struct Indexer {
  std::uint32_t heads = 0;
  std::uint32_t width = 0;     ///< features of a head
  std::uint32_t top_k = 0;     ///< keys that a position meets
  std::uint32_t interval = 1;  ///< each so many-th layer has one, and the next ones take what it has chosen, …
  std::uint32_t offset = 0;    ///< … counted from this layer on, by its number from 1; those before it have one each

  bool operator==(const Indexer&) const = default;
};

/// Attention of all heads to one head whose features are keys and values, in a window, and to what compressors make of
/// every few positions (DeepSeek-V4): of 4 positions each, of which an indexer chooses, or of 128 each. What heads make
/// goes through narrow rows, group by group.
struct CompressedAttention {
  static constexpr std::size_t most_ratios = 128;
  static constexpr std::uint32_t indexed_ratio = 4;  ///< that an indexer goes with

  std::uint32_t query_rank = 0;     ///< features of the row that queries are made of
  std::uint32_t output_groups = 1;  ///< of heads, each with a narrow row of its own
  std::uint32_t output_rank = 0;    ///< features of these rows
  /// Positions that a compressor puts together, of each layer; 0 or 1: the layer has none, as those after the list.
  std::array<std::uint32_t, most_ratios> ratios{};

  /// Returns the ratio of a layer, by its number from 0.
  [[nodiscard]] constexpr std::uint32_t ratio(std::uint32_t layer) const {
    return layer < most_ratios && ratios.at(layer) > 1 ? ratios.at(layer) : 0;
  }

  bool operator==(const CompressedAttention&) const = default;
};

/// A gated delta net in the place of attention (Yang et al. 2024), as Qwen3-Next has it: a state per head of values
/// that each position changes. Its work is that of chunks of 64 positions, whose triangular inverses are not counted.
struct DeltaNet {
  std::uint32_t interval = 0;  ///< each so many-th layer, by its number from 1, has attention; 0: all have
  std::uint32_t key_heads = 0;
  std::uint32_t key_width = 0;  ///< features of a head
  std::uint32_t value_heads = 0;
  std::uint32_t value_width = 0;

  bool operator==(const DeltaNet&) const = default;
};

/// How the parts of a mixture are called.
struct ExpertNames {
  std::string_view half = "mlp";  ///< the second half of a layer
  std::string_view gate = "gate_proj";
  std::string_view up = "up_proj";
  std::string_view down = "down_proj";
};

/// Experts in the place of the second half of a layer.
struct Experts {
  std::uint32_t count = 0;
  std::uint32_t feed_forward = 0;  ///< features inside an expert
  std::uint32_t shared_width = 0;  ///< features of the expert that every row goes to; 0: there is none
  bool shared_gate = false;        ///< each row has a gate between 0 and 1 for the shared expert
  std::uint32_t idle = 0;          ///< further ones that hand rows on as they are, without weights
  std::uint32_t dense_layers = 0;  ///< layers in front that have none
  std::uint32_t interval = 1;      ///< of the layers after these each so many-th has them, by its number from 0
  RouteOptions route{};
  double capacity = 1;    ///< rows of an expert, as a multiple of its even share
  bool of_parts = false;  ///< parts of a sequence on different ranks have places of their own
  bool dropless = false;  ///< that many are expected, and none are dropped
  ExpertNames names{};

  /// But for names, and for what counts with real numbers alone.
  bool operator==(const Experts& other) const {
    const auto sizes = [](const Experts& one) {
      return std::tie(one.count, one.feed_forward, one.shared_width, one.shared_gate, one.idle, one.dense_layers,
                      one.interval, one.route.top_k, one.capacity, one.of_parts, one.dropless);
    };
    return sizes(*this) == sizes(other);
  }
};

struct Decoder : Transformer {
  std::uint32_t head_width = 0;  ///< features of a head, of latent attention those not turned; 0: of a row, shared out
  std::uint32_t turned = 0;      ///< features of a head that positions turn; 0: all
  PositionKind position = PositionKind::rotary;
  NormKind norm = NormKind::rms;
  HalfKind half = HalfKind::swiglu;
  bool qkv_bias = false;         ///< queries, keys and values have biases
  bool projection_bias = false;  ///< the product after attention has a bias
  bool linear_bias = false;      ///< all products of layers have biases
  bool logits_bias = false;
  QkNorm qk_norm = QkNorm::none;
  bool post_norms = false;   ///< what the halves of a layer make is normed before it is added
  bool tied = false;         ///< the table of tokens is the weight of the logits
  double documents = 1;      ///< of the pairs of positions of a causal mask, the part that is inside of one document
  std::uint32_t window = 0;  ///< positions that each one sees; 0: all before it
  std::uint32_t window_interval = 0;  ///< each so many-th layer, by its number from 1, has no window; 0: all have it
  std::uint32_t further_tokens = 0;   ///< layers behind the last one that predict a further token each
  bool attention_gate = false;        ///< what attention makes is multiplied by the sigmoid of a product of the row
  DeltaNet delta{};
  std::optional<LatentAttention> latent{};
  std::optional<CompressedAttention> compressed{};
  std::uint32_t streams = 1;         ///< residual rows of a position, which each half mixes anew (hyper-connections)
  std::optional<Indexer> indexer{};  ///< of latent attention with a row for queries, or of compressed attention
  std::optional<Experts> experts{};

  [[nodiscard]] constexpr std::uint32_t width_of_head() const { return head_width > 0 ? head_width : hidden / heads; }
  /// Features of a head that positions turn.
  [[nodiscard]] constexpr std::uint32_t width_turned() const { return turned > 0 ? turned : width_of_head(); }

  bool operator==(const Decoder&) const = default;
};

[[nodiscard]] Graph decoder(std::string title, const Decoder& sizes);

}  // namespace hcclsim::models::zoo
