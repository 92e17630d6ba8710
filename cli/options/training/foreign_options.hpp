#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cli/options/parse/common.hpp"

/// Options of `run` that have no effect in a command that takes the others.
namespace hcclsim::cli {

/// Refuses files that a run writes, and the options of these keys: `reason` tells where they belong.
void refuse_foreign_options(std::span<const std::unique_ptr<Option>> options_of_run,
                            std::span<const std::string_view> keys, const std::string& reason);

}  // namespace hcclsim::cli
