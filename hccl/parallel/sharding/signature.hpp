#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/graph.hpp"

/// What can be cut of an operator. The axes of its tensors are those of a few *dimensions* of the computation: a linear
/// operator has the rows, the features that it reads and the features that it makes. A dimension is cut everywhere or
/// nowhere, and each becomes an axis of the device matrix. An output over whose devices a *summed* dimension is cut is
/// a sum that is left to be added up over them.
namespace hcclsim::hccl {

struct Dimension {
  std::string_view name;        ///< "batch", "positions", "features", …
  std::uint32_t things = 0;     ///< a cut must divide their number; 0: only the sizes of the axes count
  std::string_view whole = {};  ///< why it cannot be cut; empty: it can
  bool summed = false;          ///< the output is a sum over it
};

/// A tensor as its operator sees it. Rows of sequences have two axes, sequences and positions.
struct TensorAxes {
  models::Shape shape;
  std::vector<std::size_t> dimensions;  ///< of each axis
};

struct Signature {
  std::vector<Dimension> dimensions;  ///< in the order of the device matrix, from the left
  std::vector<TensorAxes> inputs;
  std::vector<TensorAxes> parameters;
  std::vector<TensorAxes> outputs;
  bool parameters_first = false;  ///< in a strategy
  /// Parameters, the last ones, whose cuts a strategy may leave out: they follow from the others.
  std::size_t optional_parameters = 0;
  /// Vectors behind the parameters that a strategy may name and that a graph does not have, moving statistics and
  /// labels: dimensions that cut each.
  std::vector<std::vector<std::size_t>> further{};

  /// Number of a dimension; none: as many as there are.
  [[nodiscard]] std::size_t find(std::string_view name) const;
};

/// The whole network, with what rules need to know beyond its operators.
class WholeGraph {
 public:
  /// `graph` must outlive it.
  explicit WholeGraph(const models::Graph& graph);

  [[nodiscard]] const models::Graph& graph() const { return *graph_; }
  [[nodiscard]] const models::Operator& op(models::OperatorId id) const { return graph_->operators[id]; }
  /// A tensor with rows of several positions each as sequences × positions × features, rows of experts with places for
  /// parts of sequences as experts × sequences × places of a sequence × features, others as they are.
  [[nodiscard]] models::Shape view(models::Value value) const;
  /// Whether what a value holds are the queries, keys and values of an attention, side by side with as many heads each.
  [[nodiscard]] bool is_packed(models::Value value) const { return packed_[value.op] && value.output == 0; }
  /// Samples whose rows a value holds as experts × places × features; 0: it does not.
  [[nodiscard]] std::uint32_t samples_of_rows(models::Value value) const { return samples_of_rows_[value.op]; }
  /// Signature of an operator. Throws Error(bad_input, "strategy") for kinds without a rule.
  [[nodiscard]] Signature signature(models::OperatorId id) const;

 private:
  const models::Graph* graph_;
  std::vector<std::uint32_t> positions_;        ///< of operators: rows of each sequence
  std::vector<bool> packed_;                    ///< of operators
  std::vector<std::uint32_t> samples_of_rows_;  ///< of operators
  std::vector<bool>
      has_parts_of_sequences_;  ///< of operators: they make rows of experts with places for parts of sequences
};

/// How operators of a kind are cut.
struct OperatorRule {
  models::OperatorKind kind{};
  Signature (*signature)(const WholeGraph& whole, models::OperatorId id) = nullptr;
  /// Names of the dimensions whose devices are the group of the operator (models::Operator::group).
  std::vector<std::string_view> group{};
  bool takes_output = false;  ///< strategies may say how the output is cut
  /// What is left of an operator's work where its batch is cut into parts; null: it follows from the shapes.
  void (*share)(models::Operator& op, std::uint32_t parts) = nullptr;
};

/// Rule of a kind; nullptr if it has none.
[[nodiscard]] const OperatorRule* rule_of(models::OperatorKind kind);

// One table per family of operators (rules/).
[[nodiscard]] std::span<const OperatorRule> elementwise_rules();
[[nodiscard]] std::span<const OperatorRule> product_rules();
[[nodiscard]] std::span<const OperatorRule> norm_rules();
[[nodiscard]] std::span<const OperatorRule> embedding_rules();
[[nodiscard]] std::span<const OperatorRule> image_rules();
[[nodiscard]] std::span<const OperatorRule> row_rules();
[[nodiscard]] std::span<const OperatorRule> loss_rules();
[[nodiscard]] std::span<const OperatorRule> expert_rules();
[[nodiscard]] std::span<const OperatorRule> general_rules();

}  // namespace hcclsim::hccl
