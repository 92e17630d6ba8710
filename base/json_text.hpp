#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

/// JSON that a user gives: whatever is in the file, it is a value or an error that names the file.
namespace hcclsim {

/// Parses JSON without comments; `see` is told the events of the parser, and its answer does not count. Throws
/// Error(bad_input, kind): with line and column what is no JSON, objects and lists more than 100 deep (what visits or
/// prints values calls itself once per level), numbers that no double holds.
/// For nlohmann::json and nlohmann::ordered_json.
template <typename Json = nlohmann::json>
[[nodiscard]] Json parse_json_text(std::string_view text, const std::string& file, std::string_view kind,
                                   const typename Json::parser_callback_t& see = nullptr);

}  // namespace hcclsim
