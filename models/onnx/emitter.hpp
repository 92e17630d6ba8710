#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/graph_builder.hpp"
#include "models/onnx/network.hpp"
#include "models/onnx/patterns.hpp"

/// Writes the operators of a Graph, node by node. Tensors of three axes are the rows of sequences, as in the zoo; what
/// only gives numbers other axes is written when somebody reads it.
namespace hcclsim::models::onnx {

class Emitter {
 public:
  Emitter(const Network& network, const Patterns& patterns, const ImportOptions& options);

  /// Throws Error(bad_input, "onnx").
  [[nodiscard]] Graph run() &&;

 private:
  // emitter.cpp
  [[nodiscard]] std::vector<std::string> logits() const;
  void find_live(const std::vector<std::string>& outputs);
  /// All outputs of a node: the first one takes its time, the others that are read are copied out.
  void emit(std::size_t number);
  void emit_first(std::size_t number);
  void emit_copies(std::size_t number);
  [[nodiscard]] bool emit_known(std::size_t number);
  void set(const std::string& name, Value value);
  [[nodiscard]] Value value_of(const std::string& name);
  /// As features × rows; of three axes, as the rows of sequences.
  [[nodiscard]] Value rows(const std::string& name);
  /// With the axes of the file.
  [[nodiscard]] Value image(const std::string& name);
  [[nodiscard]] Value shaped(const std::string& name, Value value, const Shape& shape, std::uint32_t sequence);
  [[nodiscard]] Shape shape_of(const std::string& name) const;
  [[nodiscard]] Shape rows_shape(const std::string& name) const;
  [[nodiscard]] std::uint32_t sequence_of(const std::string& name) const;
  [[nodiscard]] std::vector<std::uint32_t> sizes_of(const std::string& name) const;
  /// The name of an operator: that of its parameters without their last part, or that of the node.
  [[nodiscard]] std::string name_for(std::size_t number, const std::string& weight = "");
  [[nodiscard]] std::string unique_name(const std::string& name);
  [[nodiscard]] std::string layer_for(std::size_t number, const std::string& weight) const;
  void begin(std::size_t number, const std::string& weight);
  /// Notes the names of parameters that the builder has just given to an operator.
  void note(std::initializer_list<std::string> weights);
  [[nodiscard]] bool knows(const std::string& weight) const { return parameters_.contains(weight_name(weight)); }
  [[nodiscard]] std::string weight_name(const std::string& name) const { return network_.tensor(name).weight; }
  [[nodiscard]] std::vector<Value> varying(const Node& node);
  [[nodiscard]] Graph finish(const std::vector<std::string>& outputs);

  // emit_patterns.cpp
  void emit_pattern(std::size_t number, const Pattern& pattern);
  void emit_attention(const Pattern& pattern);
  void emit_linear(std::size_t number, const std::string& from, const std::string& weight, const std::string& bias,
                   const std::string& output, std::size_t last);

  // emit_products.cpp
  [[nodiscard]] bool emit_convolution(std::size_t number);
  [[nodiscard]] bool emit_pool(std::size_t number);
  [[nodiscard]] bool emit_gemm(std::size_t number);
  [[nodiscard]] bool emit_matmul(std::size_t number);
  [[nodiscard]] bool emit_einsum(std::size_t number);
  /// Whether a tensor is all of its initializer, not a part of it.
  [[nodiscard]] bool is_whole(const std::string& weight) const;
  /// Gives the operator appended last a parameter, which others may have too.
  void use_weight(OperatorId id, const std::string& weight);
  /// A product plus its bias, as work of the vector unit. `number`: the node that it is named after.
  [[nodiscard]] Value with_bias(std::size_t number, OperatorId product, const std::string& bias);
  /// The padding of all four sides with which a window makes as many outputs; −1: none does.
  [[nodiscard]] std::int64_t even_padding(const Node& node, std::int64_t kernel, std::int64_t stride) const;
  [[nodiscard]] std::optional<Window> square_window(const Node& node) const;

  // emit_recurrent.cpp
  /// The initializers that a tensor is put together of, in their order.
  [[nodiscard]] std::vector<std::string> weights_behind(const std::string& name) const;
  [[nodiscard]] bool emit_recurrent(std::size_t number);

  // emit_others.cpp
  [[nodiscard]] bool emit_gather(std::size_t number);
  /// Copies rows of a table that is known, or of tokens that are not the batch.
  void look_up_rows(std::size_t number);
  /// Adds rows of tables, those that the nodes Gather of these outputs look up, to what there is. `number`: the node
  /// that a sum is named after.
  [[nodiscard]] Value with_rows(std::size_t number, Value x, const std::vector<std::string>& looked_up);
  /// … to each other.
  [[nodiscard]] Value sum_of_rows(std::size_t number, const std::vector<std::string>& looked_up);
  /// The rows of tables that wait for what they are added to, behind other axes for the same numbers.
  [[nodiscard]] const std::vector<std::string>* waiting_rows(std::string name) const;
  [[nodiscard]] bool emit_add(std::size_t number);
  [[nodiscard]] bool emit_norm(std::size_t number);
  [[nodiscard]] bool emit_concat(std::size_t number);
  [[nodiscard]] bool emit_reduction(std::size_t number);
  [[nodiscard]] bool emit_activation(std::size_t number);
  [[nodiscard]] bool emit_dropout(std::size_t number);
  void emit_vector(std::size_t number, const VectorWork& work);
  void emit_layout(std::size_t number);
  void emit_parts(std::size_t number);

  const Network& network_;
  const Patterns& patterns_;
  const ImportOptions& options_;
  std::optional<GraphBuilder> builder_;
  std::map<std::string, Value> values_;
  std::set<std::size_t> live_;
  std::set<std::string> wanted_;                     ///< outputs of the file that there is a loss of
  std::map<std::string, std::uint32_t> parameters_;  ///< by initializer: its number
  std::map<std::string, OperatorId> tables_;         ///< token embeddings by initializer
  std::map<std::string, std::vector<std::string>>
      rows_to_add_;                 ///< rows of tables that wait for what they are added to
  std::vector<std::string> names_;  ///< of parameters
  std::set<std::string> taken_;     ///< names of operators
  std::string layer_;
  std::map<std::string, std::set<std::string>> numbered_;  ///< layers by their names without numbers
  std::size_t current_ = 0;                                ///< node that is being written
};

}  // namespace hcclsim::models::onnx
