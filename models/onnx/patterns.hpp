#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/onnx/network.hpp"

/// Nodes that exporters write for one operation, found in a network. The last node of a pattern stands for it, the
/// others are absorbed: nobody else reads what they make.
namespace hcclsim::models::onnx {

enum class PatternKind : std::uint8_t {
  gelu,        ///< x/2 · (1 + erf(x/√2)), or the form with tanh
  swiglu,      ///< x · σ(x) · y
  layer_norm,  ///< (x − mean) / √(variance + ε) · weight + bias
  rms_norm,    ///< x / √(mean of x² + ε) · weight
  rotary,      ///< t · cos + (its halves exchanged, one negated) · sin
  attention,   ///< softmax(Q·Kᵀ · scale + mask) · V, with its heads side by side before and behind it
  linear,      ///< a product with a weight, and a bias
};

struct Pattern {
  PatternKind kind = PatternKind::gelu;
  std::vector<std::string> inputs{};   ///< attention: queries, keys, values as features of all heads; or all in one
  std::vector<std::string> weights{};  ///< tensors of parameters
  std::string output{};
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t length = 0;  ///< attention: rows of a sequence, whatever axis the file has them in
  bool causal = false;
  float drop_rate = 0;
  std::size_t heart = no_node;  ///< the node that it is named after
};

struct Patterns {
  std::map<std::size_t, Pattern> by_last{};  ///< by the number of its last node
  std::set<std::size_t> absorbed{};
};

[[nodiscard]] Patterns find_patterns(const Network& network);

}  // namespace hcclsim::models::onnx
