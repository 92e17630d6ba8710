#pragma once

#include <string>
#include <string_view>

#include "models/graph.hpp"

/// Builds a Graph operator by operator and infers the shapes. What cannot be is refused with Error(bad_input) of kind
/// "model" that names the operator and the sizes: a batch of 0 or more than 65536, no channels, an image smaller than
/// a window or than the product of the strides before it, operands of an addition that differ, attention heads that do
/// not divide the features, a drop rate outside [0, 1), operators of sequences without tokens to read.
namespace hcclsim::models {

struct ConvolutionOptions {
  std::uint32_t channels = 0;  ///< of the output
  Window window;
  std::uint32_t groups = 1;
  bool bias = false;
};

/// Kind of the Error for an input image that is too small for the network's windows and strides.
inline constexpr std::string_view small_input = "input-size";

class GraphBuilder {
 public:
  /// Starts with the batch of input images (or feature vectors: height = width = 1) as operator 0.
  GraphBuilder(std::string title, const Shape& input);
  /// Starts with a batch of `sequences` of `length` tokens each as operator 0; only token_embedding reads it.
  [[nodiscard]] static GraphBuilder of_tokens(std::string title, std::uint32_t sequences, std::uint32_t length);

  /// Id of the input batch.
  [[nodiscard]] static OperatorId input() { return 0; }
  [[nodiscard]] const Shape& shape(OperatorId id) const { return graph_.operators[id].output; }

  OperatorId convolution(std::string name, OperatorId from, const ConvolutionOptions& options);
  /// The scales start at `initial_scale` times their usual values.
  OperatorId batch_norm(std::string name, OperatorId from, double initial_scale = 1);
  OperatorId relu(std::string name, OperatorId from);
  OperatorId relu6(std::string name, OperatorId from);
  OperatorId max_pool(std::string name, OperatorId from, const Window& window);
  /// Average pooling of any image to `size` x `size` pixels.
  OperatorId average_pool(std::string name, OperatorId from, std::uint32_t size);
  OperatorId add(std::string name, OperatorId main, OperatorId shortcut);
  OperatorId flatten(std::string name, OperatorId from);
  /// `from` must be flat.
  OperatorId linear(std::string name, OperatorId from, std::uint32_t features, bool bias);
  /// Sets the fraction `rate` of the elements to zero, 0 ≤ rate < 1, and scales the others by 1 / (1 − rate).
  OperatorId dropout(std::string name, OperatorId from, float rate = 0.5F);
  OperatorId gelu(std::string name, OperatorId from);
  /// `from` must be flat.
  OperatorId layer_norm(std::string name, OperatorId from);
  /// One row of `features` per token of the input: a matrix of sequences × length rows.
  OperatorId token_embedding(std::string name, OperatorId from, std::uint32_t vocabulary, std::uint32_t features);
  OperatorId position_embedding(std::string name, OperatorId from);
  /// `from` has the queries, keys and values side by side; the result has a third of its features.
  OperatorId attention(std::string name, OperatorId from, std::uint32_t heads, bool causal);

  /// Adds the softmax cross-entropy of `logits` as the last operator and hands the graph out.
  [[nodiscard]] Graph finish(OperatorId logits) &&;

 private:
  /// Refuses an operator of sequences whose input does not come from tokens; returns the length of a sequence.
  [[nodiscard]] std::uint32_t sequence_of(std::string_view name, OperatorId from) const;
  /// `output` by value: it may be the shape of an operator that moves when one is appended.
  OperatorId append(std::string name, OperatorKind kind, std::vector<OperatorId> inputs, Shape output);
  void add_parameter(OperatorId owner, std::string_view suffix, std::vector<std::uint32_t> shape);
  /// Shape of `from` after a window slid over it; notes the stride of the result against the network's input.
  Shape slide(std::string_view name, OperatorId from, const Window& window, std::uint32_t channels);

  Graph graph_;
  std::vector<std::uint64_t> strides_;  ///< per operator: product of the strides from the input to it
  std::uint64_t parameter_elements_ = 0;
  std::uint64_t next_stride_ = 0;  ///< stride of the operator appended next; 0: as its first input
};

}  // namespace hcclsim::models
