#pragma once

#include <string_view>

#include "study/context/literal.hpp"

namespace hcclsim::study {

/// A value of the right type for an option of set_auto_parallel_context.
struct ContextValue {
  std::string_view key;
  const Literal& value;
  bool compat = false;
  bool graph_mode = true;
};

/// Throws Error(bad_input) of kind "value-error", "type-error" or "key-error" for a value that the option does not
/// take.
void check_context_value(const ContextValue& given);

}  // namespace hcclsim::study
