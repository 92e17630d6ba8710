#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "models/graph.hpp"

/// A kernel as the graph engine launches it: what the cost model of an NPU needs to know, without naming an NPU.
namespace hcclsim::models {

/// The part of a training step that a kernel belongs to: compression makes gradients smaller for their reduction, check
/// looks at reduced gradients, update applies them.
enum class Phase : std::uint8_t { forward, backward, check, update, compression };

/// Which unit and which efficiency a kernel runs with; communication is not computed at all, `host` is computed by the
/// CPU beside the NPU.
enum class KernelClass : std::uint8_t { convolution, matmul, vector, communication, host };

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

/// Elements that a rank sends to its neighbours in its group, which lies in rows of `columns` ranks; it gets from each
/// side what that neighbour sends its way. The last row is next to the first one only around a ring.
struct NeighbourElements {
  std::array<std::uint64_t, 9> elements{};  ///< of the nine directions that to() names
  std::uint32_t columns = 1;
  bool ring = false;

  /// Rows and columns from −1 to 1: (1, 0) is the next row, the rank behind this one if rows have one rank.
  [[nodiscard]] std::uint64_t& to(int row, int column = 0) { return elements.at(place(row, column)); }
  [[nodiscard]] std::uint64_t to(int row, int column = 0) const { return elements.at(place(row, column)); }
  [[nodiscard]] static std::size_t place(int row, int column) {  // NOLINTNEXTLINE(bugprone-misplaced-widening-cast)
    return 3 * static_cast<std::size_t>(row + 1) + static_cast<std::size_t>(column + 1);
  }
  /// In all directions together.
  [[nodiscard]] std::uint64_t sum() const {
    return std::accumulate(elements.begin(), elements.end(), std::uint64_t{0});
  }
};

/// What a kernel of class communication does: its operator is that of the graph, or in the backward pass its dual.
struct CommunicationWork {
  OperatorKind kind = OperatorKind::all_reduce;
  Group group{};
  Peer peer{};
  DataType dtype = DataType::fp32;
  ReduceOp reduction = ReduceOp::sum;  ///< of all_reduce, reduce_scatter
  NeighbourElements neighbours{};      ///< of neighbour_exchange
  bool widened = false;                ///< numbers of 16 bits are cast to fp32 before it, and back after it
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
  std::shared_ptr<const CubeWork> second_cube{};  ///< of a kernel that does two kinds of products; null: of one
  Flops flops = 0;                                ///< useful operations, 2 per multiply-add
  std::uint64_t vector_elements = 0;              ///< element operations of the vector unit
  Bytes read = 0;                                 ///< bytes from HBM, every input once
  Bytes written = 0;                              ///< bytes to HBM, every output once
  OperatorId op = no_operator;  ///< of the graph that it comes from; none: a measured kernel, or one of all
  std::uint32_t chunk = 0;      ///< of that operator
  Launched launched = Launched::always;
  bool recomputed = false;               ///< it has run in the forward pass before
  bool owners = false;                   ///< update: only who keeps the parameter up to date launches it
  std::uint32_t gradient = no_gradient;  ///< check, update: the gradient it is for, in production order; none: all
  /// On a nominal NPU, by the cost model (device/program.hpp) or measured; 0 until it is known. Not of communication.
  Seconds duration = 0;
  /// The first part of the duration, in which a measured NPU waits for its host and computes nothing.
  Seconds idle = 0;
  std::shared_ptr<const CommunicationWork> communication{};  ///< of class communication; null: of another class

  /// The part of the duration in which the NPU computes.
  [[nodiscard]] Seconds busy() const { return duration - idle; }
  /// The duration where the NPU computes `factor` times as long, and its host is as fast as it was.
  [[nodiscard]] Seconds slowed(double factor) const { return idle + busy() * factor; }
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
