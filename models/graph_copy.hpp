#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "models/graph.hpp"

namespace hcclsim::models {

/// A graph that is written anew, operator by operator, with others between them. Parameters are numbered in the order
/// of their first operators.
class GraphCopy {
 public:
  /// `whole` must outlive it.
  explicit GraphCopy(const Graph& whole);

  /// The next operator of the whole graph; its inputs and parameters are those of the copy.
  [[nodiscard]] Operator copied_next();
  /// Appends what stands for that operator. Returns its number.
  OperatorId append_next(Operator op);
  OperatorId copy_next() { return append_next(copied_next()); }
  /// Appends another operator, whose inputs and parameters are those of the copy.
  OperatorId append(Operator op);
  std::uint32_t add_parameter(Parameter parameter);
  /// What operators that are copied later read in the place of the first output of the one copied last.
  void replace_last(Value value) { value_of_.back() = value; }

  [[nodiscard]] Graph& made() { return made_; }
  [[nodiscard]] Graph finish() && { return std::move(made_); }

 private:
  const Graph& whole_;
  Graph made_;
  OperatorId next_ = 0;                                     ///< operator of the whole graph
  std::vector<std::uint32_t> first_value_;                  ///< of its operators
  std::vector<Value> value_of_;                             ///< of its values
  std::vector<std::optional<std::uint32_t>> parameter_of_;  ///< of its parameters
  std::set<std::uint32_t> owned_;                           ///< parameters of the copy with an operator
};

}  // namespace hcclsim::models
