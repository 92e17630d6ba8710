#pragma once

#include <string>
#include <vector>

/// A TOML file of options: one `key = value` per option, the key being the option's name without dashes, at the top or
/// in a section named as the command. Values are strings, numbers, true or false, or lists, which may span lines. All
/// errors are Error(bad_input) of kind "config" that name file and line.
namespace hcclsim {

struct ConfigEntry {
  std::string section;  ///< empty: none
  std::string key;
  std::string value;  ///< as the command line would have it: without quotes, lists joined by commas
  std::string place;  ///< "FILE:LINE"
};

/// Reads a file; refuses what is not of this form: strings and lists that are not closed, a key given twice.
[[nodiscard]] std::vector<ConfigEntry> read_config_file(const std::string& path);

}  // namespace hcclsim
