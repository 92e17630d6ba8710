#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "models/zoo/decoder.hpp"

namespace hcclsim::models::zoo {

/// Appends layers of a decoder. Operators of a layer begin with its name ("model.layers.0").
class DecoderLayers {
 public:
  DecoderLayers(GraphBuilder& builder, const Decoder& sizes) : builder_(builder), sizes_(sizes) {}

  /// Attention and a second half, each added to what it reads. `layer`: its number from 0.
  OperatorId append(const std::string& name, std::uint32_t layer, OperatorId x, bool with_experts);
  OperatorId norm(std::string name, OperatorId x);

  // Residual rows of several streams, side by side; with one stream both return `x`.
  OperatorId enter_streams(const std::string& name, OperatorId x);
  /// `chosen`: weights of the streams are made of the rows; else the streams are added up.
  OperatorId leave_streams(const std::string& name, OperatorId x, bool chosen);

 private:
  /// Mixed holds the row that a half reads of the streams, and the weights by which it mixes them.
  struct Mixed {
    OperatorId row = 0;
    OperatorId weights = 0;
  };
  Mixed read_streams(const std::string& name, OperatorId x);
  OperatorId write_streams(const std::string& name, const Mixed& mixed, OperatorId half, OperatorId x);
  OperatorId append_in_streams(const std::string& name, std::uint32_t layer, OperatorId x, bool with_experts);
  OperatorId append_second(const std::string& name, OperatorId x, bool with_experts);

  OperatorId append_compressed_attention(const std::string& self, std::uint32_t layer, OperatorId x);
  /// Rows that each stand for `ratio` positions, of `features`; their numbers are spread over the rows that they are
  /// made of.
  OperatorId append_compressor(const std::string& name, std::uint32_t ratio, std::uint32_t features, OperatorId x);
  /// What an indexer chooses of rows that each stand for `ratio` positions.
  OperatorId append_compressed_indexer(const std::string& name, std::uint32_t ratio, OperatorId x,
                                       OperatorId query_row);

  /// What a half makes, normed where the network does so, added to what the half was made of.
  OperatorId add(const std::string& name, const std::string& norm_name, OperatorId half, OperatorId x);
  /// The first half of a layer, of whichever kind it has.
  OperatorId append_mixer(const std::string& name, std::uint32_t layer, OperatorId x);
  OperatorId append_attention(const std::string& self, OperatorId x);
  OperatorId append_delta_net(const std::string& self, const DeltaNet& net, OperatorId x);
  OperatorId append_latent_attention(const std::string& self, const LatentAttention& latent, OperatorId x);
  /// The row that queries are made of: narrow, or `x`.
  OperatorId append_query_row(const std::string& self, const LatentAttention& latent, OperatorId x);
  /// Scores of all positions, and the loss that trains them, which hands `narrow` on.
  OperatorId append_indexer(const std::string& self, const Indexer& indexer, OperatorId x, OperatorId query_row,
                            OperatorId narrow);
  OperatorId append_projection(const std::string& self, OperatorId context);
  OperatorId turn(std::string name, OperatorId x, std::uint32_t heads, std::uint32_t turned);
  /// Makes the product that is the gate of another one, or that other one.
  using Product = std::function<OperatorId(bool is_gate)>;
  /// What the last product of a half reads.
  OperatorId activate(std::string name, const Product& product);
  /// Two products with an activation between them, of `features`.
  OperatorId append_half(const std::string& name, OperatorId x, std::uint32_t features);
  OperatorId append_mixture(const std::string& name, const Experts& experts, OperatorId x);
  OperatorId append_experts(const std::string& name, const Experts& experts, OperatorId x);
  OperatorId append_shared_expert(const std::string& name, const Experts& experts, OperatorId x);
  OperatorId append_idle_experts(const std::string& name, const Experts& experts, OperatorId x);

  GraphBuilder& builder_;
  const Decoder& sizes_;
  double met_ = 1;            ///< Operator::met of the layer that is appended
  bool has_indexer_ = false;  ///< it chooses keys itself
};

}  // namespace hcclsim::models::zoo
