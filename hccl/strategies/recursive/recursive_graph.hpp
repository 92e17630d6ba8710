#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hccl/strategies/mindspore_kind.hpp"
#include "models/graph.hpp"

/// What MindSpore's recursive search works on: operators with up to two inputs and one output, all seen as samples ×
/// channels × height × width; a matrix has height and width. Operators of eliminated kinds are not there: what they
/// read and what reads them are neighbours.
namespace hcclsim::hccl {

/// Samples, channels, height, width.
using Nchw = std::array<std::uint32_t, 4>;

inline constexpr std::size_t nchw_samples = 0;
inline constexpr std::size_t nchw_channels = 1;
inline constexpr std::size_t nchw_height = 2;
inline constexpr std::size_t nchw_width = 3;

struct RecursiveTensor {
  Nchw shape{1, 1, 1, 1};
  Nchw parts{1, 1, 1, 1};  ///< that the search has cut each axis into, a power of two

  /// Elements of a part along an axis.
  [[nodiscard]] std::uint32_t size(std::size_t axis) const { return shape.at(axis) / parts.at(axis); }
  [[nodiscard]] double elements() const;
  bool operator==(const RecursiveTensor&) const = default;
};

struct RecursiveNode {
  std::string name;
  models::OperatorId op = 0;
  MindSporeKind kind = MindSporeKind::virtual_dataset;
  RecursiveTensor first;   ///< input 0
  RecursiveTensor second;  ///< input 1: the weight of a product; 1×1×1×1: there is none
  RecursiveTensor output;
  std::vector<std::uint32_t> into{};  ///< nodes that it reads, each once
  std::vector<std::uint32_t> out{};   ///< nodes that read it, each once
};

struct RecursiveGraph {
  std::vector<RecursiveNode> nodes;  ///< in forward order
  std::uint32_t eliminated = 0;      ///< operators of MindSpore that are not there
};

/// Throws Error(bad_input, "unsupported") for a network with communication in it.
[[nodiscard]] RecursiveGraph make_recursive_graph(const models::Graph& graph);

}  // namespace hcclsim::hccl
