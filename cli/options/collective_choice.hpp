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

/// After parsing: completes the choice, and the request, whose collective is known. `selecting` as in
/// finish_platform_options. Throws Error(bad_input).
void finish_collective_choice(const OptionOrigins& origins, std::initializer_list<const char*> selecting,
                              CollectiveChoice& choice, hccl::CollectiveRequest& request);

/// Adds two options: how often an operation is repeated and timed, and how often before that.
void add_repetition_options(Command& command, const char* iterations_name, std::uint32_t& iterations,
                            const char* warmups_name, std::uint32_t& warmups);
/// What the repetitions are for, after the options --iters and --warmup_iters.
void add_method_option(Command& command, std::uint32_t& iterations, std::uint32_t& warmups);
/// --links: how many of the busiest links are listed.
void add_links_option(Command& command, std::uint32_t& links);
/// Whether the range over what is assumed is simulated, and told for each assumption.
void add_uncertainty_options(Command& command, bool& uncertainty, bool& explained);
/// Refuses the one without the other.
void check_uncertainty_options(const OptionOrigins& origins, bool uncertainty);

}  // namespace hcclsim::cli
