#include "base/config_file.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

namespace hcclsim {
namespace {

/// Reads the part of TOML that options need: sections, comments, and keys with a string, a number, true or false, or a
/// list of these, which may span lines.
class TomlReader {
 public:
  explicit TomlReader(std::string path) : path_(std::move(path)) {
    lines_ = std::stringstream(read_text_file(path_, "config"));
  }

  std::vector<ConfigEntry> read() {
    std::string section;
    while (next_line()) {
      if (line_.starts_with('[')) {
        if (!line_.ends_with(']')) fail("section '{}' is not closed by ]", line_);
        section = trimmed(line_.substr(1, line_.size() - 2));
      } else if (!line_.empty()) {
        read_key(section);
      }
    }
    return std::move(entries_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("config", "{}: {}", place(), fmt::format(format, std::forward<Args>(args)...));
  }

  [[nodiscard]] std::string place() const { return fmt::format("{}:{}", path_, number_); }

  /// Moves to the next line, which stands in line_ without comment and blanks at its ends.
  bool next_line() {
    if (!std::getline(lines_, buffer_)) return false;
    ++number_;
    char quote = 0;
    std::size_t end = 0;
    for (; end < buffer_.size() && (quote != 0 || buffer_[end] != '#'); ++end) {
      const char c = buffer_[end];
      if (quote != 0 ? c == quote : c == '"' || c == '\'') quote = quote != 0 ? '\0' : c;
    }
    if (quote != 0) fail("a string is not closed by {}", quote);
    line_ = trimmed(std::string_view(buffer_).substr(0, end));
    return true;
  }

  void read_key(const std::string& section) {
    const std::size_t equals = line_.find('=');
    const std::string key = unquoted(trimmed(line_.substr(0, equals)));
    if (equals == std::string_view::npos || key.empty()) fail("'{}' is not of the form key = value", line_);
    ConfigEntry entry{section, key, {}, place()};
    const auto same =
        std::find_if(entries_.begin(), entries_.end(), [&](const ConfigEntry& e) { return e.key == key; });
    if (same != entries_.end()) fail("key '{}' was given before, in {}", key, same->place);
    const std::string_view value = trimmed(line_.substr(equals + 1));
    if (value.empty()) fail("key '{}' has no value", key);
    refuse_nested(value.substr(value.starts_with('[') ? 1 : 0), entry);
    entry.value = value.starts_with('[') ? read_list(std::string(value), entry) : unquoted(value);
    entries_.push_back(std::move(entry));
  }

  /// Whether a line begins with `key =`, the key without quotes.
  static bool is_key(std::string_view line) {
    const std::size_t equals = line.find('=');
    return equals != std::string_view::npos && line.find_first_of("\"',]") > equals;
  }

  /// The items of a list, joined by commas as the command line has them.
  std::string read_list(std::string text, const ConfigEntry& entry) {
    while (!text.ends_with(']')) {
      if (!next_line() || is_key(line_)) {
        bad_input("config", "{}: the list of key '{}' is not closed by ]", entry.place, entry.key);
      }
      text += line_;
    }
    std::string joined;
    std::string_view rest = trimmed(std::string_view(text).substr(1, text.size() - 2));
    while (!rest.empty()) {
      const std::size_t comma = end_of_item(rest);
      const std::string_view item = trimmed(rest.substr(0, comma));
      refuse_nested(item, entry);
      joined += (joined.empty() ? "" : ",") + unquoted(item);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return joined;
  }

  /// A value must be a string, a number, true or false.
  static void refuse_nested(std::string_view value, const ConfigEntry& entry) {
    value = trimmed(value);
    if (!value.starts_with('{') && !value.starts_with('[')) return;
    bad_input("config", "{}: key '{}{}{}' holds a {}; give a string, a number, true or false, or a list of these",
              entry.place, entry.section, entry.section.empty() ? "" : ".", entry.key,
              value.starts_with('{') ? "table" : "list in a list");
  }

  /// The place of the first comma outside a string; the text's size if there is none.
  static std::size_t end_of_item(std::string_view text) {
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == ',' && quote == 0) return i;
      if (quote != 0 ? c == quote : c == '"' || c == '\'') quote = quote != 0 ? '\0' : c;
    }
    return text.size();
  }

  [[nodiscard]] std::string unquoted(std::string_view text) const {
    const bool quoted = text.starts_with('"') || text.starts_with('\'');
    if (!quoted) return std::string(text);
    if (text.size() < 2 || text.find(text.front(), 1) != text.size() - 1) fail("'{}' follows a string", text);
    return std::string(text.substr(1, text.size() - 2));
  }

  std::string path_;
  std::stringstream lines_;
  std::string buffer_;
  std::string_view line_;
  int number_ = 0;
  std::vector<ConfigEntry> entries_;
};

}  // namespace

std::vector<ConfigEntry> read_config_file(const std::string& path) { return TomlReader(path).read(); }

}  // namespace hcclsim
