#pragma once

#include <string>
#include <string_view>

#include "study/files/literal.hpp"

namespace hcclsim::study {

/// A value of the right type for an option of set_auto_parallel_context.
struct ContextValue {
  std::string_view key;
  const Literal& value;
  bool compat = false;
  bool graph_mode = true;
  bool limited = true;  ///< to the 4096 devices of the documents
};

/// Throws Error(bad_input) of kind "value-error", "type-error" or "key-error" for a value that the option does not
/// take. comm_fusion is checked by the next two.
void check_context_value(const ContextValue& given);

/// That comm_fusion is a dict of known keys.
void check_fusion_keys(const ContextValue& given);
/// One of its keys and what it holds.
void check_fusion_entry(const ContextValue& given, const std::string& key, const Literal& entry);

}  // namespace hcclsim::study
