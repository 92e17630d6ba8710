#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "models/zoo/zoo.hpp"

/// The sizes and parts of networks that a user may choose, as one table: options of the command line, the settings of
/// reports and the refusals of zoo.cpp come from it.
namespace hcclsim::models {

/// One that a user chooses, in ModelOptions.
using ChosenValue =
    std::variant<std::optional<std::uint32_t> ModelOptions::*, std::optional<std::string> ModelOptions::*,
                 std::optional<double> ModelOptions::*, std::optional<bool> ModelOptions::*,
                 std::optional<PositionKind> ModelOptions::*, std::optional<NormKind> ModelOptions::*,
                 std::optional<QkNorm> ModelOptions::*, std::optional<HalfKind> ModelOptions::*>;

struct ModelChoice {
  std::string_view key;   ///< "kv-heads"
  std::string_view help;  ///< what it chooses
  ChosenValue value;
  NetworkKinds kinds = 0;  ///< networks that leave it open
  double least = 0;        ///< of numbers
  double most = 0;
  std::string_view usual = "as published";
};

/// In the order of --help.
[[nodiscard]] std::span<const ModelChoice> model_choices();

/// What is chosen, as text: "8", "on", "geglu"; nothing if it is left as it is.
[[nodiscard]] std::optional<std::string> chosen_text(const ModelChoice& choice, const ModelOptions& options);

}  // namespace hcclsim::models
