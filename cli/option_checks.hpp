#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/platform_edit.hpp"

/// Checks of options' values that say what is accepted. CLI11 puts the option's name before their messages.
namespace hcclsim::cli {

/// A whole number, in decimal digits only, of the range.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t lowest, std::uint64_t highest);
/// A finite decimal number of the range.
[[nodiscard]] CLI::Validator number(double lowest, double highest);
/// One of the words; a near miss is suggested.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> words);

/// Adds --levels, the levels of a hierarchy as hccl::parse_levels takes them.
CLI::Option* add_levels_option(CLI::App& command, std::string& levels);

/// Adds an option of the values on and off.
CLI::Option* add_switch(CLI::App& command, const std::string& name, bool& value, const std::string& description);

/// Adds `--set TARGET=VALUE`, which may be given several times: edits of the platform in their order.
CLI::Option* add_platform_edits(CLI::App& command, std::vector<sim::PlatformEdit>& edits);
/// A sentence for each edit that the cluster was loaded with.
void add_edit_notes(const sim::Cluster& cluster, std::vector<std::string>& notes);

/// Whatever `parse` takes without throwing an Error, whose message becomes the check's.
template <typename Parse>
[[nodiscard]] CLI::Validator parsed_by(Parse parse, std::string description) {
  return CLI::Validator(
      [parse](std::string& text) -> std::string {
        try {
          static_cast<void>(parse(text));
          return {};
        } catch (const Error& error) {
          return error.what();
        }
      },
      std::move(description));
}

/// Parses "1,0.98,1.01"; throws Error(bad_input) of kind "option".
[[nodiscard]] std::vector<double> parse_number_list(std::string_view text);
/// Parses "0,2,4-7" into ascending ranks; throws Error(bad_input) of kind "option".
[[nodiscard]] std::vector<Rank> parse_rank_list(std::string_view text);

}  // namespace hcclsim::cli
