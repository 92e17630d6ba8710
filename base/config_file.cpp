#include "base/config_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

namespace hcclsim {
namespace {

class ConfigReader {
 public:
  explicit ConfigReader(const InputFile& file) : file_(file.path()) {
    try {
      add_table(toml::parse(file.text()), {});
    } catch (const toml::parse_error& error) {
      constexpr std::string_view introduction = "Error while parsing ";
      std::string_view what = error.description();
      if (what.starts_with(introduction)) what.remove_prefix(introduction.size());
      bad_input("config", "{}: {}", place(error.source()), printable(std::string(what)));
    }
  }

  /// In the order of the file.
  std::vector<ConfigEntry> entries() {
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      return std::tie(a.at.line, a.at.column) < std::tie(b.at.line, b.at.column);
    });
    std::map<std::string, std::string> places;
    std::vector<ConfigEntry> entries;
    for (Found& found : found_) {
      const auto [first, is_new] = places.try_emplace(found.entry.key, found.entry.place);
      if (!is_new) {
        bad_input("config", "{}: key '{}' was given before, in {}", found.entry.place, found.entry.key, first->second);
      }
      entries.push_back(std::move(found.entry));
    }
    return entries;
  }

 private:
  struct Found {
    toml::source_position at;
    ConfigEntry entry;
  };

  [[nodiscard]] std::string place(const toml::source_region& region) const {
    return fmt::format("{}:{}", file_, region.begin.line);
  }

  void add_table(const toml::table& table, const std::string& section) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (section.empty() && node.is_table() && !node.as_table()->is_inline()) {
        add_table(*node.as_table(), name);
        continue;
      }
      const std::string where = place(key.source());
      const std::string full = section.empty() ? name : fmt::format("{}.{}", section, name);
      found_.push_back({key.source().begin, {section, name, value_of(node, where, full), where}});
    }
  }

  /// As the command line would have it.
  static std::string value_of(const toml::node& node, const std::string& where, const std::string& key) {
    const toml::array* const list = node.as_array();
    if (list == nullptr) return scalar(node, where, key);
    const bool of_lists =
        std::all_of(list->begin(), list->end(), [](const toml::node& item) { return item.is_array(); });
    if (!of_lists) return list_of(*list, where, key);
    std::vector<std::string> lists;
    for (const toml::node& item : *list) lists.push_back(list_of(*item.as_array(), where, key));
    return fmt::format("{}", fmt::join(lists, ";"));
  }

  static std::string list_of(const toml::array& list, const std::string& where, const std::string& key) {
    std::vector<std::string> items;
    for (const toml::node& item : list) items.push_back(scalar(item, where, key));
    return fmt::format("{}", fmt::join(items, ","));
  }

  static std::string scalar(const toml::node& node, const std::string& where, const std::string& key) {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
    if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
    if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
    const std::string_view what = node.is_table() ? "table" : node.is_array() ? "list in a list" : "date or time";
    bad_input(
        "config",
        "{}: key '{}' holds a {}; give a string, a number, true or false, a list of these, or a list of such lists",
        where, key, what);
  }

  std::string file_;
  std::vector<Found> found_;
};

}  // namespace

std::vector<ConfigEntry> read_config_file(const std::string& path) {
  return ConfigReader(InputFile(path, "config")).entries();
}

}  // namespace hcclsim
