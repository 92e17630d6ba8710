#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/graph.hpp"

/// What an operator iterates over, and which of its tensors an iteration axis runs through: a matrix product iterates
/// over rows, inner features and outer features; the first two cut its input, the last two its weight. A strategy is
/// how many parts every iteration axis is cut into, so the strategies of its tensors always fit together. Here is all
/// that the searches know of a kind of operator:
///
/// | operator | iteration axes (names); reduced ones in brackets | not cut |
/// | --- | --- | --- |
/// | input | samples | the sample |
/// | convolution | samples, [input channels], output channels | rows and columns; channels of grouped ones |
/// | batch norm, pooling, element-wise on images, flatten, patches | samples, channels | rows and columns |
/// | linear | rows, [input features], output features | |
/// | element-wise on features | rows, features | |
/// | layer and RMS norm | rows | features |
/// | token embedding | sequences, [vocabulary], features | the sequence |
/// | position, segment embedding, class token, select_rows, sum_rows | sequences, features | the sequence |
/// | rotary, attention | sequences, heads | the sequence |
/// | join_rows, factorization | sequences | all else |
/// | losses | rows that all its logits have in common | classes |
/// | split, concat, slice | all axes but the processed one | |
///
/// MindSpore searches over its own operators, which are finer. `mindspore_operators` says which of them an operator
/// stands for, and which of these its recursive search removes before it searches.
namespace hcclsim::hccl {

/// Of a tensor's axis that no iteration axis runs through.
inline constexpr std::uint32_t not_cut = ~0U;

struct LoopAxis {
  std::string_view name;
  std::uint32_t size = 1;  ///< it can be cut into any number of parts that divides this
  bool reduced = false;    ///< the output is a sum over it: what cuts it must add up partial results
};

struct LoopTensor {
  models::Tensor tensor;                ///< whole
  std::vector<std::uint32_t> axes;      ///< of each axis of the tensor: the iteration axis that cuts it, or not_cut
  std::uint32_t parameter = not_cut;    ///< index in parameter order; not_cut: it is none
};

/// What the backward pass needs of the forward pass.
enum class Kept : std::uint8_t { nothing, inputs, output };

struct OperatorLoops {
  std::vector<LoopAxis> axes;       ///< in the order in which the tensors have them, inputs first
  std::vector<LoopTensor> inputs;   ///< what it reads, then its parameters
  std::uint32_t activations = 0;    ///< of the inputs: those that are no parameters
  std::vector<LoopTensor> outputs;
  Kept kept = Kept::nothing;

  /// Index of the axis with this name, if the operator has it.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;
};

/// Parts of every iteration axis; as long as OperatorLoops::axes.
using Cuts = std::vector<std::uint32_t>;

/// Devices that compute different parts.
[[nodiscard]] std::uint64_t devices_used(const Cuts& cuts);
/// Parts of every axis of a tensor.
[[nodiscard]] std::vector<std::uint32_t> cuts_of(const LoopTensor& tensor, const Cuts& cuts);
/// Bytes of a part of it.
[[nodiscard]] double slice_bytes(const LoopTensor& tensor, const Cuts& cuts);

/// Throws Error(bad_input, "unsupported") for an operator that communicates: what is searched is a whole network.
[[nodiscard]] OperatorLoops loops_of(const models::Graph& graph, models::OperatorId id);

/// Kinds of MindSpore's operators that the recursive search tells apart.
enum class MindSporeKind : std::uint8_t {
  virtual_dataset,
  matmul,
  batch_matmul,
  convolution,
  pooling,
  batch_norm,
  loss,
  elementwise,  ///< with activations and BiasAdd
  softmax,
  reduce,
  gather,
  layer_norm,
  reshape,
  slice,
};

[[nodiscard]] std::string_view name_of(MindSporeKind kind);
/// Whether the recursive search removes operators of this kind before it begins; they follow their neighbours.
[[nodiscard]] bool is_eliminated(MindSporeKind kind);

/// The operators of MindSpore that one of ours stands for, in forward order. At most one of them is searched by the
/// recursive search: the others follow it.
[[nodiscard]] std::vector<MindSporeKind> mindspore_operators(const models::Operator& op);

}  // namespace hcclsim::hccl
