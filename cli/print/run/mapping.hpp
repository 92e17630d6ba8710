#pragma once

#include <string>

#include "base/json.hpp"
#include "study/files/foreign/mapping.hpp"

/// Prints the options that a file of another program has become (study/files/foreign/mapping.hpp).
namespace hcclsim::cli {

/// A line per option, and what became none; empty without a file.
[[nodiscard]] std::string mapping_text(const study::ForeignMapping& mapping);
[[nodiscard]] Json mapping_json(const study::ForeignMapping& mapping);

}  // namespace hcclsim::cli
