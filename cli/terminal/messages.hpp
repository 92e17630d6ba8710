#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"

/// What is told on standard error beside a result. Programs that call hcclsim set HCCLSIM_MESSAGES=json and get every
/// message as a JSON object on a line of its own: {"error": {"kind", "status", "message"}}, {"progress": "…"}; people
/// get text, and progress on a terminal only.
namespace hcclsim::cli {

/// Whether a program reads standard error.
[[nodiscard]] bool messages_are_json();

/// A line of JSON with a message of this key.
[[nodiscard]] std::string json_message(std::string_view key, Json value);

}  // namespace hcclsim::cli
