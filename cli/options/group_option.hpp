#pragma once

#include <string>
#include <vector>

#include "hccl/comm/communicator.hpp"

/// The option --group of every command whose collectives can be among a part of the ranks.
namespace hcclsim::cli {

class Command;

/// Reads "dp0=0,4,8,12" or "dp0=0-3": a name as HCCL accepts it, and ascending ranks; with commas between them several,
/// as lists of option files have them: "dp0=0,2,dp1=1,3". Throws Error(bad_input) of kind "group".
[[nodiscard]] std::vector<hccl::Communicator> parse_groups(const std::string& text);

/// Adds --group, which may be given several times; `does` says what the command makes of the groups.
void add_group_option(Command& command, const std::string& does, std::vector<hccl::Communicator>& groups);

}  // namespace hcclsim::cli
