#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"

/// A TOML file (1.0) of options: one `key = value` per option, the key being the option's name without dashes, at the
/// top or in a section named as the command. Values are strings, numbers, true or false, lists of these, or lists of
/// such lists. All errors are Error(bad_input) of kind "config" that name file and line.
namespace hcclsim {

struct ConfigEntry {
  std::string section;  ///< empty: none
  std::string key;
  std::string value;  ///< as the command line would have it: without quotes, lists joined by commas, lists of lists by
                      ///< semicolons
  std::string place;  ///< "FILE:LINE"
  std::string written{};  ///< what the file has there, if it is not the key

  /// "FILE:LINE: key", or what the file has in its place.
  [[nodiscard]] std::string origin() const { return place + ": " + (written.empty() ? key : written); }
};

/// Reads a file, in the order of its keys; refuses what is no TOML, tables as values, lists beside other values in a
/// list, dates, and a key that is given twice, in sections of any name.
[[nodiscard]] std::vector<ConfigEntry> read_config_file(const std::string& path);

/// A TOML file of any form: its keys in their order, dates as texts.
struct TomlFile {
  Json json;
  std::map<std::string, std::size_t> lines;  ///< of keys, by their path, such as "comm_fusion.allreduce"
};
[[nodiscard]] TomlFile read_toml(const std::string& path);

/// The same of a file whose sections may have the same keys.
[[nodiscard]] std::vector<ConfigEntry> read_sections(const std::string& path);

}  // namespace hcclsim
