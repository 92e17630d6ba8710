#include "base/config_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#define TOML_HEADER_ONLY 1
// Some of its assertions are about what a file says, such as "[=": its parser refuses that just behind them.
#define TOML_ASSERT(condition) static_assert(true)
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

/// The string or comment that a text begins with, or nothing. It may lack its end.
std::string_view quoted_or_comment(std::string_view text) {
  if (text.starts_with('#')) return text.substr(0, text.find('\n'));
  for (const std::string_view quotes : {R"(""")", "'''", "\"", "'"}) {
    if (!text.starts_with(quotes)) continue;
    for (std::size_t i = quotes.size(); i < text.size(); ++i) {
      if (quotes.size() == 1 && text[i] == '\n') return text.substr(0, i);
      if (quotes.front() == '"' && text[i] == '\\') {
        ++i;
      } else if (text.substr(i).starts_with(quotes)) {
        std::size_t end = i + quotes.size();  // before the three that end a string, up to two may belong to it
        while (quotes.size() > 1 && end < i + 5 && text.substr(end).starts_with(quotes.front())) ++end;
        return text.substr(0, end);
      }
    }
    return text;
  }
  return {};
}

/// TOML has characters beyond ASCII in strings and comments only. Elsewhere toml++ has no defined answer to some, such
/// as é, so they are refused before it sees them.
void require_ascii_outside_strings(std::string_view text, const std::string& file) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  constexpr std::string_view before_a_string = " \t\r\n=,.[{";  // elsewhere quotes are part of a value that is none
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  const std::size_t start = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  for (std::size_t i = start; i < text.size();) {
    const bool may_begin = i == start || text[i] == '#' || before_a_string.find(text[i - 1]) != std::string_view::npos;
    const std::string_view passed = may_begin ? quoted_or_comment(text.substr(i)) : std::string_view();
    if (!passed.empty()) {
      i += passed.size();
    } else if (is_ascii(text[i])) {
      ++i;
    } else {
      const auto* const end = std::find_if(text.begin() + i, text.end(), is_ascii);
      bad_input("config", "{}:{}: '{}' stands outside of quotes and comments, where TOML has ASCII alone", file,
                1 + std::count(text.begin(), text.begin() + i, '\n'), printable(std::string(text.begin() + i, end)));
    }
  }
}

class ConfigReader {
 public:
  explicit ConfigReader(const InputFile& file) : file_(file.path()) {
    const std::string text = file.text();
    require_ascii_outside_strings(text, file_);
    try {
      add_table(toml::parse(text), {});
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
