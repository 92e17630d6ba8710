#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "study/files/yaml.hpp"

/// A value of a YAML file with its path, for readers that say exactly what is wrong and where. Types are those of
/// Kubernetes: a number without quotes is no text, and a text in quotes is no number.
namespace hcclsim::study {

class YamlValue {
 public:
  /// Both must outlive the value. Errors are Error(bad_input, "msjob").
  YamlValue(const YamlNode& node, const std::string& file) : node_(&node), file_(&file), line_(node.line) {}

  /// Throws "FILE:LINE: PATH: message".
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_with(fmt::format(format, std::forward<Args>(args)...));
  }

  /// --- of a map
  /// Nothing for a key without value, as in Kubernetes.
  [[nodiscard]] std::optional<YamlValue> find(const std::string& key) const;
  [[nodiscard]] YamlValue require(const std::string& key) const;
  /// All members, by key.
  [[nodiscard]] std::vector<std::pair<std::string, YamlValue>> members() const;
  /// Throws for a key that is none of these.
  void accept_only(std::span<const std::string> keys) const;

  /// --- of a list
  [[nodiscard]] std::vector<YamlValue> items() const;

  /// --- of a scalar
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool boolean() const;
  /// Whether it is an integer in one of YAML's forms: 12, +12, 1_000, 0x1f, 0o17, 017, 0b101.
  [[nodiscard]] bool is_integer() const;
  [[nodiscard]] std::int64_t integer(std::int64_t lowest, std::int64_t highest) const;
  /// The same without octal numbers that begin with 0, which not all readers take as such.
  [[nodiscard]] std::int64_t whole_number(std::int64_t lowest, std::int64_t highest) const;
  /// A text as written or an integer in decimal digits: quantities have both forms.
  [[nodiscard]] std::string written() const;
  /// The place in `words` of a text that is one of them.
  [[nodiscard]] std::size_t one_of(std::initializer_list<std::string_view> words) const;

 private:
  YamlValue(const YamlNode& node, const std::string& file, std::uint32_t line, std::string path)
      : node_(&node), file_(&file), line_(line), path_(std::move(path)) {}

  [[nodiscard]] YamlValue below(const YamlMember& member) const;
  [[nodiscard]] std::string path_of(const std::string& key) const { return path_.empty() ? key : path_ + '.' + key; }
  [[noreturn]] void fail_with(const std::string& message) const;
  void require_kind(YamlNode::Kind kind, std::string_view what) const;
  /// What it is, for "… is a list, not a number".
  [[nodiscard]] std::string_view what() const;

  const YamlNode* node_;
  const std::string* file_;
  std::uint32_t line_;  ///< of its key, or where it begins
  std::string path_;
};

}  // namespace hcclsim::study
