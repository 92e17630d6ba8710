#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hccl/comm/communicator.hpp"
#include "models/graph.hpp"

/// Cuts a network into the stages of a pipeline. A part is a run of layers; stage s of p has the parts s, p + s, 2p + s
/// and so on as its chunks. What comes before the first layer belongs to the first part, what comes behind the last
/// layer to the last one. The batch of tokens is read by every stage that needs it.
namespace hcclsim::hccl {

/// 1, …, `number`: stages that can share so many layers or NPUs.
[[nodiscard]] std::vector<std::uint32_t> divisors_of(std::uint32_t number);

/// Layers of each part if all have the same number. Throws Error(bad_input, "pipeline") that lists the numbers of parts
/// which divide the layers.
[[nodiscard]] std::vector<std::uint32_t> even_parts(std::uint32_t layers, std::uint32_t stages, std::uint32_t chunks);

/// Time that a cut before layer `layer` adds to part `part`, which begins there, and to the one before it.
using CutTime = std::function<double(std::uint32_t part, std::size_t layer)>;

/// Layers of each part such that the part that takes longest takes the least time, each with one or more.
/// `times`: of each layer, what is before the first and behind the last included in these; without `cut` cuts add
/// nothing.
[[nodiscard]] std::vector<std::uint32_t> balanced_parts(std::span<const double> times, std::uint32_t parts,
                                                        const CutTime& cut = {});

/// The graphs of the stages. A tensor that a later stage reads is sent to each stage that reads it, once, by the stage
/// that makes it, to the rank with the same position in that stage. A parameter that several stages use belongs to the
/// first of them, which sends it to the others in every step and gets their gradients back.
/// `layers_of_parts` has stages × chunks numbers, which sum to the layers of the graph. Throws Error(bad_input,
/// "pipeline").
[[nodiscard]] std::vector<models::Graph> stage_graphs(const models::Graph& graph,
                                                      std::span<const std::uint32_t> layers_of_parts,
                                                      std::uint32_t stages, Rank ranks_per_stage);

/// Part of each operator: the run of layers that it belongs to.
[[nodiscard]] std::vector<std::uint32_t> parts_of_operators(const models::Graph& graph,
                                                            std::span<const std::uint32_t> layers_of_parts);

}  // namespace hcclsim::hccl
