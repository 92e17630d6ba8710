#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "models/graph.hpp"

/// A kernel as the graph engine launches it: what the cost model of an NPU needs to know, without naming an NPU.
namespace hcclsim::models {

/// The part of a training step that a kernel belongs to: compression makes gradients smaller for their reduction, check
/// looks at reduced gradients, update applies them.
enum class Phase : std::uint8_t { forward, backward, check, update, compression };

/// Which unit and which efficiency a kernel runs with; communication is not computed at all.
enum class KernelClass : std::uint8_t { convolution, matmul, vector, communication };

/// Multiply-accumulate work of the cube unit: `groups` independent products of an m×k and a k×n matrix. The numbers are
/// those the cube sees, padding of images and channels included, before rounding up to its 16×16×16 tiles.
struct CubeWork {
  std::uint64_t m = 0;  ///< 0: no cube work
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t groups = 1;
  bool split_k = false;   ///< weight gradient: tiles of all three dimensions are spread over the cores
  bool sums_out = false;  ///< results leave the core in fp32, as they were added up
};

/// Number of a tensor in a Program.
using TensorId = std::uint32_t;
inline constexpr TensorId no_tensor = std::numeric_limits<TensorId>::max();
inline constexpr OperatorId no_operator = std::numeric_limits<OperatorId>::max();
inline constexpr std::uint32_t no_gradient = std::numeric_limits<std::uint32_t>::max();

/// Elements that a rank sends to the next and to the previous rank of its group; each gets from either side what that
/// neighbour sends its way. The last rank is next to the first one only around a ring.
struct NeighbourElements {
  std::uint64_t to_next = 0;
  std::uint64_t to_previous = 0;
  bool ring = false;
};

/// What a kernel of class communication does: its operator is that of the graph, or in the backward pass its dual.
struct CommunicationWork {
  OperatorKind kind = OperatorKind::all_reduce;
  Group group{};
  Peer peer{};
  DataType dtype = DataType::fp32;
  ReduceOp reduction = ReduceOp::sum;  ///< of all_reduce, reduce_scatter
  NeighbourElements neighbours{};      ///< of neighbour_exchange
  std::uint64_t elements = 0;          ///< of the rank's input; of a receive: of what comes
  TensorId input = no_tensor;          ///< none: a receive
  TensorId output = no_tensor;         ///< none: a send
  /// all_to_all: elements from each rank to each other, rank by rank; empty: equal parts of `elements`.
  std::vector<std::uint64_t> counts{};
};

/// Of the micro-batches of a step, those with which a kernel is launched.
enum class Launched : std::uint8_t {
  always,
  with_first,  ///< casts of weights, which all micro-batches use
  with_last,   ///< casts of gradients, when all micro-batches have contributed
  before_all,  ///< before the first step: what a network that is not trained copies between stages
};

struct Kernel {
  std::string name;  ///< "<operator>:<what>", such as "layer1.0.conv1:forward"
  Phase phase = Phase::forward;
  KernelClass kind = KernelClass::vector;
  DataType dtype = DataType::fp16;  ///< type the kernel computes in
  CubeWork cube;
  CubeWork second_cube{};             ///< of a kernel that does two kinds of products
  Flops flops = 0;                    ///< useful operations, 2 per multiply-add
  std::uint64_t vector_elements = 0;  ///< element operations of the vector unit
  Bytes read = 0;                     ///< bytes from HBM, every input once
  Bytes written = 0;                  ///< bytes to HBM, every output once
  OperatorId op = no_operator;        ///< of the graph that it comes from; none: a measured kernel, or one of all
  std::uint32_t chunk = 0;            ///< of that operator
  Launched launched = Launched::always;
  bool recomputed = false;               ///< it has run in the forward pass before
  bool owners = false;                   ///< update: only who keeps the parameter up to date launches it
  std::uint32_t gradient = no_gradient;  ///< check, update: the gradient it is for, in production order; none: all
  /// On a nominal NPU, by the cost model (device/program.hpp) or measured; 0 until it is known. Not of communication.
  Seconds duration = 0;
  CommunicationWork communication{};
};

/// A kernel of the vector unit that belongs to a gradient, not to an operator of the graph.
[[nodiscard]] inline Kernel vector_kernel(std::string_view name, Phase phase, DataType type, std::uint64_t operations,
                                          Bytes read, Bytes written) {
  return {.name = std::string(name),
          .phase = phase,
          .kind = KernelClass::vector,
          .dtype = type,
          .cube = {},
          .flops = static_cast<Flops>(operations),
          .vector_elements = operations,
          .read = read,
          .written = written};
}

}  // namespace hcclsim::models
