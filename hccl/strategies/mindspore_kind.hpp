#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/graph.hpp"

/// MindSpore searches over its own operators, which are finer than those of our networks: a linear operator is a MatMul
/// and a BiasAdd, an attention two BatchMatMuls with a Softmax between them. Here is which of them each of ours stands
/// for.
namespace hcclsim::hccl {

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
