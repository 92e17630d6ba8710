#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// YAML of users as a tree whose every node knows its line. yaml-cpp parses, behind yaml.cpp alone.
namespace hcclsim::study {

struct YamlMember;

struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  std::string text{};      ///< of a scalar
  bool plain = false;      ///< a scalar without quotes, which may stand for a number or a truth value
  std::uint32_t line = 0;  ///< from 1 on
  std::vector<YamlNode> items{};
  std::vector<YamlMember> members;  ///< in the order of the file; no key comes twice

  /// Of a map; null pointer without the key.
  [[nodiscard]] const YamlMember* find(std::string_view key) const;
};

struct YamlMember {
  std::string key;
  std::uint32_t line = 0;  ///< of the key
  YamlNode value;
};

/// What a document may have of nodes, with those that aliases repeat.
inline constexpr std::size_t most_yaml_nodes = 100'000;

/// The only document of a text. Throws Error(bad_input, kind) with `file` and line for what is not YAML, a text without
/// a document or with several, keys that are no texts or come twice, merge keys, and more than `most_yaml_nodes`.
[[nodiscard]] YamlNode parse_yaml(const std::string& text, const std::string& file, std::string_view kind);

}  // namespace hcclsim::study
