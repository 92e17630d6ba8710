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
#include <optional>
#include <sstream>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "base/files/nesting.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

namespace hcclsim {
namespace {

/// The last byte of the string that begins at `begin`; of one that does not end, of its line or of the text.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  const std::string three(3, quote);
  const bool of_lines = text.substr(begin).starts_with(three);
  const std::string_view end = std::string_view(three).substr(0, of_lines ? 3 : 1);
  for (std::size_t i = begin + end.size(); i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text.substr(i).starts_with(end)) {
      return i + end.size() - 1;
    } else if (text[i] == '\n' && !of_lines) {
      return i;
    }
  }
  return text.size();
}

/// The line in which the parts of a key, lists and tables stand in each other deeper than deepest_nesting; toml++ and
/// what destroys its tables recurse once per level.
std::optional<std::size_t> too_deep_line(std::string_view text) {
  std::vector<std::size_t> around;  // depth outside of each bracket that is open
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = end_of_string(text, i);
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '[' || c == '{') {
      around.push_back(depth++);
    } else if ((c == ']' || c == '}') && !around.empty()) {
      depth = around.back();
      around.pop_back();
    } else if (c == '.') {
      ++depth;
    } else if (c == ',' || c == '\n') {
      depth = around.empty() ? 0 : around.back() + 1;
    }
    if (depth > deepest_nesting) {
      const auto end = text.begin() + static_cast<std::ptrdiff_t>(i);
      return 1 + static_cast<std::size_t>(std::count(text.begin(), end, '\n'));
    }
  }
  return std::nullopt;
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

/// The text with every byte beyond ASCII as "?" and its two digits. TOML has no question mark outside of strings and
/// comments, and nothing else beyond ASCII either: both texts are TOML, or neither is.
std::string as_ascii(std::string_view text) {
  std::string ascii;
  ascii.reserve(text.size());
  for (const char c : text) {
    if (is_ascii(c)) {
      ascii += c;
    } else {
      ascii += fmt::format("?{:02x}", static_cast<unsigned char>(c));
    }
  }
  return ascii;
}

/// The characters beyond ASCII at which the parser of as_ascii() stopped, if it was at such.
std::string beyond_ascii_at(const toml::source_position& at, std::string_view text) {
  for (toml::source_index line = 1; line < at.line; ++line) text.remove_prefix(text.find('\n') + 1);
  std::size_t column = 1;
  for (std::size_t i = 0; i < text.size() && column <= at.column; ++i) {
    const std::size_t next = column + (is_ascii(text[i]) ? 1 : 3);
    if (!is_ascii(text[i]) && at.column < next)
      return {text.begin() + i, std::find_if(text.begin() + i, text.end(), is_ascii)};
    column = next;
  }
  return {};
}

/// A message with the key as it is written: of a quoted one toml++ 3.3 repeats the first two characters, and it adds
/// the space behind it.
std::string with_true_key(std::string_view message) {
  std::string text(message);
  if (!text.starts_with("key-value pair: cannot redefine") && !text.starts_with("table header: cannot redefine"))
    return text;
  for (std::size_t quote = text.find('\''); quote + 6 <= text.size(); ++quote) {
    const bool begins = text[quote] == '\'' || text[quote] == '.';
    const bool quoted = text[quote + 1] == '"' || text[quote + 1] == '\'';
    if (begins && quoted && text.compare(quote + 2, 2, text, quote + 4, 2) == 0) text.erase(quote + 2, 2);
  }
  const std::size_t end = text.rfind('\'');
  const std::size_t last = text.find_last_not_of(" \t", end - 1);
  return text.erase(last + 1, end - last - 1);
}

class ConfigReader {
 public:
  explicit ConfigReader(const InputFile& file) : file_(file.path()) {
    std::string text = file.text();
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
    if (const std::optional<std::size_t> line = too_deep_line(text)) {
      bad_input("config", "{}:{}: tables and lists are more than {} deep", file_, *line, deepest_nesting);
    }
    // toml++ has no defined answer to some characters beyond ASCII where there may be none, such as é: it sees them
    // only after it has found the same text without them to be TOML.
    if (!std::all_of(text.begin(), text.end(), is_ascii)) static_cast<void>(parse(as_ascii(text), text));
    table_ = parse(text, {});
  }

  [[nodiscard]] TomlFile whole() const {
    TomlFile file;
    file.json = ordered(table_, "", file.lines);
    return file;
  }

  /// In the order of the file.
  std::vector<ConfigEntry> entries() {
    add_table(table_, {});
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      return std::tie(a.at.line, a.at.column) < std::tie(b.at.line, b.at.column);
    });
    std::vector<ConfigEntry> entries;
    for (Found& found : found_) entries.push_back(std::move(found.entry));
    return entries;
  }

 private:
  /// A table with its keys in the order of the file; `path`: of the table.
  static Json ordered(const toml::table& table, const std::string& path, std::map<std::string, std::size_t>& lines) {
    struct Member {
      toml::source_position at;
      std::string key;
      const toml::node* node;
    };
    std::vector<Member> members;
    for (const auto& [key, node] : table) members.push_back({key.source().begin, std::string(key.str()), &node});
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
      return std::tie(a.at.line, a.at.column) < std::tie(b.at.line, b.at.column);
    });
    Json json = Json::object();
    for (const Member& member : members) {
      const std::string name = path.empty() ? member.key : fmt::format("{}.{}", path, member.key);
      lines.emplace(name, member.at.line);
      json.append(member.key, json_of(*member.node, name, lines));
    }
    return json;
  }

  static Json json_of(const toml::node& node, const std::string& path, std::map<std::string, std::size_t>& lines) {
    if (const auto* table = node.as_table()) return ordered(*table, path, lines);
    if (const auto* list = node.as_array()) {
      Json json = Json::array();
      for (const toml::node& item : *list) json.push_back(json_of(item, path, lines));
      return json;
    }
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* whole = node.as_integer()) return whole->get();
    if (const auto* number = node.as_floating_point()) return number->get();
    if (const auto* truth = node.as_boolean()) return truth->get();
    std::ostringstream date;
    node.visit([&](const auto& value) {
      if constexpr (toml::is_chronological<decltype(value)>) date << value.get();
    });
    return date.str();
  }

  struct Found {
    toml::source_position at;
    ConfigEntry entry;
  };

  /// `original`: what the text stands for, in messages; empty: itself.
  [[nodiscard]] toml::table parse(const std::string& text, std::string_view original) const {
    try {
      return toml::parse(text);
    } catch (const toml::parse_error& error) {
      const std::string found = beyond_ascii_at(error.source().begin, original);
      if (!found.empty()) {
        bad_input("config", "{}: '{}' stands outside of quotes and comments, where TOML has ASCII alone",
                  place(error.source()), printable(found));
      }
      constexpr std::string_view introduction = "Error while parsing ";
      std::string_view what = error.description();
      if (what.starts_with(introduction)) what.remove_prefix(introduction.size());
      bad_input("config", "{}: {}", place(error.source()), printable(with_true_key(what)));
    }
  }

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
  toml::table table_;
  std::vector<Found> found_;
};

}  // namespace

std::vector<ConfigEntry> read_config_file(const std::string& path) {
  std::vector<ConfigEntry> entries = read_sections(path);
  std::map<std::string_view, std::string_view> places;
  for (const ConfigEntry& entry : entries) {
    const auto [first, is_new] = places.try_emplace(entry.key, entry.place);
    if (!is_new) bad_input("config", "{}: key '{}' was given before, in {}", entry.place, entry.key, first->second);
  }
  return entries;
}

TomlFile read_toml(const std::string& path) { return ConfigReader(InputFile(path, "config")).whole(); }

std::vector<ConfigEntry> read_sections(const std::string& path) {
  return ConfigReader(InputFile(path, "config")).entries();
}

}  // namespace hcclsim
