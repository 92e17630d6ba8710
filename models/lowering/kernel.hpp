#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"

/// A kernel as the graph engine launches it: what the cost model of an NPU needs to know, without naming an NPU.
namespace hcclsim::models {

/// The part of a training step that a kernel belongs to.
enum class Phase : std::uint8_t { forward, backward, update };

/// Which unit and which efficiency a kernel runs with.
enum class KernelClass : std::uint8_t { convolution, matmul, vector };

/// Multiply-accumulate work of the cube unit: `groups` independent products of an m×k and a k×n matrix. The numbers are
/// those the cube sees, padding of images and channels included, before rounding up to its 16×16×16 tiles.
struct CubeWork {
  std::uint64_t m = 0;  ///< 0: no cube work
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t groups = 1;
  bool split_k = false;  ///< weight gradient: tiles of all three dimensions are spread over the cores
};

struct Kernel {
  std::string name;  ///< "<operator>:<what>", such as "layer1.0.conv1:forward"
  Phase phase = Phase::forward;
  KernelClass kind = KernelClass::vector;
  DataType dtype = DataType::fp16;  ///< type the kernel computes in
  CubeWork cube;
  Flops flops = 0;                    ///< useful operations, 2 per multiply-add
  std::uint64_t vector_elements = 0;  ///< element operations of the vector unit
  Bytes read = 0;                     ///< bytes from HBM, every input once
  Bytes written = 0;                  ///< bytes to HBM, every output once
  /// Gradients that are complete when this kernel ends, as indices in production order.
  std::vector<std::uint32_t> gradients;
};

}  // namespace hcclsim::models
