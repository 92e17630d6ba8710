#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "study/files/foreign/mapping.hpp"

/// Files that other programs train with, taken as options of `run`: mindformers' YAML, scripts that start Megatron.
namespace hcclsim::cli {

class Command;
class OptionOrigins;

struct LaunchFileOptions {
  std::string mindformers{};           ///< empty: none
  std::string megatron{};              ///< empty: none
  std::vector<std::string> ignored{};  ///< keys that are left out
  bool explains = false;               ///< the report lists also what has no effect
  bool without_plan = false;           ///< how a step is spread, such a file does not decide
  [[nodiscard]] bool is_given() const { return !mindformers.empty() || !megatron.empty(); }

  study::ForeignMapping
      mapping{};  ///< given in the place of a file, or after finish_launch_file_options(): what became of the file
};

/// Options of `run` that say how a step is spread: --without-plan leaves them open.
[[nodiscard]] std::span<const std::string_view> plan_options();

void add_launch_file_options(Command& command, LaunchFileOptions& options);
/// Gives options their values from the file, unless the command line or the file of --config has them. Throws
/// Error(bad_input).
void finish_launch_file_options(OptionOrigins& origins, LaunchFileOptions& options);

}  // namespace hcclsim::cli
