#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "cli/options/parse/common.hpp"

/// Options of `run` that have no effect in a command that takes the others.
namespace hcclsim::cli {

/// Hides files that a run writes, and the options of these keys.
void hide_foreign_options(std::span<const std::unique_ptr<Option>> options_of_run,
                          std::span<const std::string_view> keys);

/// Throws Error(bad_input, "option") for a hidden option that is given: `reason` tells where it belongs.
void refuse_hidden_options(const Command& command, std::string_view reason);

}  // namespace hcclsim::cli
