#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "models/lowering/state.hpp"

/// Gradients of parameters while the backward pass is written: several operators may add to one, micro-batches are
/// added up, other stages may have a part of it, and it may be communicated in another type.
namespace hcclsim::models {

class ParameterGradients {
 public:
  /// `state` must outlive it.
  explicit ParameterGradients(LoweringState& state);

  /// The kernel last launched writes the gradients of parameters; if another operator has done so before (tied
  /// weights), it adds to it.
  void write(std::span<const std::uint32_t> parameters);
  /// The kernel last launched has written the gradients of these parameters, in production order. Casts them if they
  /// are communicated in another type. A gradient to which another operator or stage will add is not complete.
  void finish(std::initializer_list<std::uint32_t> parameters);
  /// The stage that borrows a parameter sends its gradient back, and the owner adds it to its own.
  void exchange(const Operator& op, OperatorKind kind);

 private:
  void accumulate(std::uint32_t index, std::uint64_t elements);

  LoweringState& state_;
  ProgramWriter& writer_;
  std::vector<bool> begun_;      ///< of parameters: a part of its gradient is there
  std::vector<TensorId> fresh_;  ///< of parameters: the micro-batch's gradient, where it is added to a sum
};

}  // namespace hcclsim::models
