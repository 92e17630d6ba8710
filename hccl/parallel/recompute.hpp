#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/graph.hpp"

/// Activations that are not kept for the backward pass, which computes them again: of whole layers, whose outputs are
/// kept, or of single operators.
namespace hcclsim::hccl {

enum class RecomputeKind : std::uint8_t { none, full, layers, operators };

struct Recompute {
  RecomputeKind kind = RecomputeKind::none;
  std::vector<std::uint32_t> layers{};   ///< how many of the first layers: of all stages, or of each
  std::vector<std::string> operators{};  ///< kinds of operators ("gelu"), or ends of their names ("mlp.act")

  bool operator==(const Recompute&) const = default;
};

/// Reads "none", "full", "layers:4", "layers:4,2" (per stage) or "operators:gelu,layer_norm,mlp.act". Throws
/// Error(bad_input, "option").
[[nodiscard]] Recompute parse_recompute(std::string_view text);

/// Kinds of the operators of a graph that can be computed again, in the order of the alphabet.
[[nodiscard]] std::vector<std::string> recomputable(const models::Graph& graph);

/// Parameters of a stage that only layers use which are recomputed as a whole, or without such layers only operators
/// that are marked. Throws as mark_recomputed.
[[nodiscard]] std::vector<bool> parameters_of_recomputed_layers(const models::Graph& graph, const Recompute& recompute,
                                                                std::uint32_t stage, std::uint32_t stages);

/// Marks the operators of a stage; `collectives`: those inside of layers that are recomputed as a whole too, else the
/// outputs of all collectives are kept. Throws Error(bad_input, "option") if there are numbers of layers for other
/// stages than there are; `matched` is set for each of the operators that the graph has.
void mark_recomputed(models::Graph& graph, const Recompute& recompute, std::uint32_t stage, std::uint32_t stages,
                     std::vector<bool>& matched, bool collectives = true);

}  // namespace hcclsim::hccl
