#pragma once

#include <optional>

#include "models/lowering/precision.hpp"

/// The options that say in which types a network is trained: a level of mixed precision, and what is otherwise.
namespace hcclsim::cli {

class Command;

struct PrecisionOptions {
  models::Amp amp = models::Amp::o2;
  std::optional<DataType> weight{};
  std::optional<DataType> compute{};
  std::optional<DataType> gradient{};
  std::optional<DataType> optimizer{};
  std::optional<bool> master_weights{};
};

void add_precision_options(Command& command, PrecisionOptions& options);

/// The level, with what was given otherwise. Gradients are of the type of parameters if that was given; an optimizer
/// that is more exact than the parameters keeps master weights unless it is told not to. Throws Error(bad_input,
/// "option").
[[nodiscard]] models::Precision chosen_precision(const PrecisionOptions& options);

}  // namespace hcclsim::cli
