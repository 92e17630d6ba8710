#pragma once

#include <string>

#include "cli/options/platform_options.hpp"

/// The options that commands share which make the schedule of one collective (`collective`, `schedule generate`): on
/// which NPUs of which platform, by which algorithm, how launched.
namespace hcclsim::cli {

class Command;

struct CollectiveChoice : PlatformChoice {
  Rank ranks = 0;  ///< 0: all
  std::string algorithm = "auto";
  std::string levels{};
  std::string launch{};
};

/// `launch`: the command's default.
void add_collective_choice(Command& command, const std::string& launch, CollectiveChoice& choice);

}  // namespace hcclsim::cli
