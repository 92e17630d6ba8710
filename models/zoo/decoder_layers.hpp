#pragma once

#include <string>

#include "models/graph_builder.hpp"
#include "models/zoo/networks.hpp"

/// Parts of decoders with RMS norm and SwiGLU that several families have.
namespace hcclsim::models::zoo {

/// The rows of the tokens.
OperatorId append_table(GraphBuilder& builder, const Transformer& sizes);
/// The logits, by a weight of their own or that of the table of tokens.
OperatorId append_logits(GraphBuilder& builder, const Transformer& sizes, OperatorId table, OperatorId x);

/// Attention with rotary positions over the normed rows, added to them. Operators begin with `name` ("model.layers.0").
OperatorId append_rotary_attention(GraphBuilder& builder, const std::string& name, const Transformer& sizes,
                                   OperatorId x);

/// down(silu(gate(x)) · up(x)) with `features` between them. Operators begin with `name` ("model.layers.0.mlp").
OperatorId append_gated_mlp(GraphBuilder& builder, const std::string& name, std::uint32_t hidden,
                            std::uint32_t features, OperatorId x);

}  // namespace hcclsim::models::zoo
