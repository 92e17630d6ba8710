#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/config_file.hpp"
#include "cli/options/parse/command.hpp"

/// Where the options of a command come from: the command line, or lines of the file of --config. Messages name an
/// option by it.
namespace hcclsim::cli {

/// Two keys of options, without dashes.
using OptionPair = std::array<const char*, 2>;

class OptionOrigins {
 public:
  /// The options of a pair exclude each other: what the command line has drops what a file has.
  OptionOrigins(const Command& command, std::span<const OptionPair> exclusive)
      : command_(command), exclusive_(exclusive) {}

  /// Takes the options of a file that neither the command line has nor something on the command line excludes. Refuses
  /// unknown keys and sections, values that an option does not accept, and flags that are neither true nor false.
  void apply(const std::vector<ConfigEntry>& entries);

  [[nodiscard]] const Command& command() const { return command_; }
  [[nodiscard]] bool given(const std::string& key) const;
  /// Whether something else than its default was given.
  [[nodiscard]] bool asks(const std::string& key) const;
  /// Whether it comes from a file.
  [[nodiscard]] bool is_of_file(const std::string& key) const;
  /// "--split", "-p (--npus)" where it has a short name, or "run.toml:3: split" for an option of the file, also
  /// "llm.yaml:12: runner_config.batch_size 4".
  [[nodiscard]] std::string name(const std::string& key) const;
  /// Throws Error(bad_input, "option") if both are given.
  void require_one_of(const std::string& one, const std::string& other) const;

 private:
  /// Whether the command line has an option that does not go with this one.
  [[nodiscard]] bool excluded(const std::string& key) const;

  const Command& command_;
  std::span<const OptionPair> exclusive_;
};

}  // namespace hcclsim::cli
