#pragma once

#include <string>

#include "clients/server/communicators/communicators.hpp"

/// What the program asks for in HcclCommConfig, of which it may have given a beginning, or nothing.
namespace hcclsim::clients {

/// What is wrong with settings; empty: nothing.
[[nodiscard]] std::string problem_of_settings(const std::string& bytes);
/// Gives the communicator what they set, and its name if they have one. Tells what of them has no effect.
std::string apply_settings(const std::string& bytes, CommunicatorGroup& group);

}  // namespace hcclsim::clients
