#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/sharding/strategy.hpp"
#include "models/graph.hpp"
#include "study/files/strategy/strategy_file.hpp"

/// The file of --strategy: how the operators of a network are cut. It is TOML, patterns of names with the cuts of the
/// inputs and parameters of an operator, of several patterns the last one that fits counts,
///
///     "layers.*.attention.qkv" = [[2, 1], [4, 1]]
///     ["layers.*.attention.out"]
///     strategy = [[2, 4], [1, 4]]
///     out_strategy = [8, 1]
///     recompute = true
///
/// or names of the axes of a device matrix (named_layouts.hpp, layout_text.hpp), regions (shard_regions.hpp), or a
/// checkpoint of strategies as MindSpore writes it (strategy_file.hpp), whose operators are known by their parameters.
namespace hcclsim::study {

struct OperatorStrategies {
  hccl::StrategyMap strategies;
  hccl::StrategyMap others{};                     ///< of a second file, of operators that are not given one otherwise
  std::vector<std::string> recomputed;            ///< names of operators
  std::map<std::string, std::uint32_t> stages{};  ///< of operators that are to be in one
  bool is_checkpoint = false;                     ///< whose stages count if there are as many
  bool has_regions = false;                       ///< MindSpore's shard() is called
  std::map<std::string, std::string> places{};    ///< of operators: "FILE:LINE: 'PATTERN'", or "FILE: KEY"
};

/// For the operators of `network`, cut over so many devices. What has no effect is added to `notes`. Throws
/// Error(bad_input) as read_pattern_file() and read_strategies() do.
[[nodiscard]] OperatorStrategies read_operator_strategies(const std::string& path, const models::Graph& network,
                                                          Rank devices, std::vector<std::string>& notes);

/// Adds what a checkpoint says of operators of which `read` says nothing (R1.30).
void add_checkpoint(OperatorStrategies& read, OperatorStrategies checkpoint);

/// Layers of each of so many stages such that operators are in those that the file gives them; layers that it does not
/// name are in the stage of the one before. Nothing if it names none, or if it is a checkpoint of another number of
/// stages. Throws Error(bad_input, "strategy") if no run of layers for each stage does it.
[[nodiscard]] std::vector<std::uint32_t> layers_of_stages(const OperatorStrategies& read, const models::Graph& network,
                                                          std::uint32_t stages);

/// What a checkpoint holds of the operators of a network that is cut over the devices of a stage: their strategies, or
/// how they are cut without one, and the stage of each. Operators without parameters, which MindSpore does not save,
/// stand under their kind and name ("gelu_h.0.mlp.gelu"), so that a loaded file cuts the network as before.
[[nodiscard]] std::vector<NodeStrategy> node_strategies(const models::Graph& network,
                                                        const hccl::StrategyMap& strategies, Rank devices,
                                                        std::span<const std::uint32_t> stages);

/// Whether a checkpoint of strategies cuts anything but samples, all into the same number of parts.
[[nodiscard]] bool cuts_operators(const std::string& path);

}  // namespace hcclsim::study
