#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hccl/parallel/layout/tensor_layout.hpp"
#include "models/graph.hpp"

/// How operators are cut over the devices of a stage, as a user of MindSpore's Primitive.shard says it.
namespace hcclsim::hccl {

/// Parts that each axis of a tensor is cut into.
using Cuts = std::vector<std::uint32_t>;

/// With device axes of one's own, MindSpore's Layout: an axis of a tensor may be cut along several of them.
struct LayoutStrategy {
  DeviceMatrix matrix;
  std::vector<TensorMap> inputs;
  std::optional<TensorMap> output{};

  bool operator==(const LayoutStrategy&) const = default;
};

/// Tensors are those that come from other operators and the parameters behind them; of embeddings and class_token the
/// parameter comes first. A tensor of sequences has the axes rows and features, as in MindSpore, or sequences,
/// positions and features: rows are cut into whole sequences first, then into positions. A linear operator is a product
/// and, if its bias has cuts too, an addition.
struct OperatorStrategy {
  std::vector<Cuts> inputs{};
  /// Where an operator leaves sums over devices: the output in parts (reduce_scatter) in place of all of it
  /// (all_reduce).
  std::optional<Cuts> output{};
  std::optional<LayoutStrategy> layout{};  ///< in the place of both
  /// Inputs that are put together for it are not kept; the backward pass puts them together again.
  bool gathers_again = false;
  /// Of batch_norm: statistics are those of so many devices, neighbours among those that share a channel; 0: of all.
  std::uint32_t group_size = 0;
  /// Of token_embedding: rows of the table that each device has, MindSpore's manual_split. Device k looks up the k-th
  /// part of the positions of every sequence, whose tokens are all of its rows. Empty: equal parts.
  std::vector<std::uint32_t> manual_split{};
  /// Of token_embedding: the table is in the memory of the host, which looks up its rows.
  bool on_host = false;

  bool operator==(const OperatorStrategy&) const = default;
};

/// By the names of operators.
using StrategyMap = std::map<std::string, OperatorStrategy>;

/// The strategies of the operators of a graph whose names fit a pattern ("h.*.mlp.c_fc"); of several patterns the last
/// one counts. Throws Error(bad_input, "strategy") for a pattern that no name fits.
[[nodiscard]] StrategyMap match_strategies(const models::Graph& graph,
                                           const std::vector<std::pair<std::string, OperatorStrategy>>& patterns);

/// "(2,1), (1,4)", and " -> (8,1)" of one with an output.
[[nodiscard]] std::string to_string(const OperatorStrategy& strategy);

}  // namespace hcclsim::hccl
