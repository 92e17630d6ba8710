#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "hccl/parallel/layout/tensor_layout.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "hccl/parallel/sharding/signature.hpp"
#include "hccl/parallel/sharding/strategy.hpp"
#include "models/graph.hpp"

/// An operator as the searches see it: the dimensions of its computation (hccl/parallel/sharding/signature.hpp), and
/// into how many parts each may be cut. The searches cut less than the rules of operators allow: height and width of
/// images stay whole, and so do the classes of a loss and the positions of an attention, whose exchange their costs do
/// not know. Rows of sequences are one axis, as in MindSpore: positions are only cut where every sequence is a part of
/// its own already.
namespace hcclsim::hccl {

/// Parts of every dimension of a signature.
using DimensionParts = std::vector<std::uint32_t>;

/// What the backward pass needs of the forward pass.
enum class Kept : std::uint8_t { nothing, inputs, output };

/// A tensor of an operator and what one element of it takes.
struct SearchedTensor {
  TensorAxes axes;
  DataType type = DataType::fp32;
};

struct SearchedOperator {
  models::OperatorId id = 0;
  models::OperatorKind kind{};
  Signature signature;
  std::vector<std::uint32_t> sizes;    ///< of each dimension: parts must divide it
  std::vector<SearchedTensor> inputs;  ///< what other operators make
  std::vector<SearchedTensor> parameters;
  std::vector<SearchedTensor> outputs;
  Kept kept = Kept::nothing;

  /// Number of a dimension, if the operator has it.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// Whether a sum over devices is left.
  [[nodiscard]] bool sums(const DimensionParts& parts) const;
  /// Cuts the samples into `rows` parts, or into as many as there are, and positions into what is left of `rows`.
  /// Whether that is possible.
  [[nodiscard]] bool cut_rows(DimensionParts& parts, std::uint32_t rows) const;
};

/// All operators of a network. The input has its samples as the only dimension that can be cut. Throws
/// Error(bad_input, "unsupported") for one that communicates: what is searched is a network before it is cut.
[[nodiscard]] std::vector<SearchedOperator> searched_operators(const models::Graph& graph);

/// Devices that compute different parts.
[[nodiscard]] std::uint64_t devices_used(const DimensionParts& parts);
/// Parts of every axis of a tensor.
[[nodiscard]] Cuts cuts_of(const TensorAxes& axes, const DimensionParts& parts);
/// Bytes of a part of it.
[[nodiscard]] double slice_bytes(const SearchedTensor& tensor, const DimensionParts& parts);

/// How the devices hold a tensor. The axes of the matrix are the dimensions that are cut, in their order, and last the
/// devices that repeat the same.
[[nodiscard]] TensorLayout layout_of(const TensorAxes& axes, const DimensionParts& parts, Rank devices);

/// As a user would write it.
[[nodiscard]] OperatorStrategy strategy_of(const SearchedOperator& op, const DimensionParts& parts);
/// What a strategy means.
[[nodiscard]] DimensionParts parts_of(const OperatorSharding& sharding);

}  // namespace hcclsim::hccl
