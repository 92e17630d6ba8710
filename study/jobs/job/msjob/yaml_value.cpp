#include "study/jobs/job/msjob/yaml_value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/suggest.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

constexpr std::array<std::string_view, 11> truths{"true", "True", "TRUE", "yes", "Yes", "YES",
                                                  "on",   "On",   "ON",   "y",   "Y"};
constexpr std::array<std::string_view, 11> falsehoods{"false", "False", "FALSE", "no", "No", "NO",
                                                      "off",   "Off",   "OFF",   "n",  "N"};

bool is_one_of(std::string_view text, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_truth_value(std::string_view text) { return is_one_of(text, truths) || is_one_of(text, falsehoods); }

/// YAML 1.1, which Kubernetes reads, takes it as octal, and YAML 1.2 as decimal.
bool begins_with_zero(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

/// What digits of a base stand for; nothing for other texts and beyond 64 bits.
std::optional<std::int64_t> integer_of(std::string_view digits, int base, bool negative) {
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  constexpr auto largest = static_cast<std::uint64_t>(INT64_MAX);
  if (size > largest + (negative ? 1 : 0)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - size : size);
}

/// A number of YAML 1.1 without its sign and without '_' between digits; empty if it does not begin as one.
std::string digits_of(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || (text[0] != '.' && (text[0] < '0' || text[0] > '9'))) return {};
  std::string digits(text);
  std::erase(digits, '_');
  return digits;
}

std::optional<std::int64_t> parse_yaml_integer(std::string_view text) {
  constexpr std::array<std::pair<char, int>, 3> prefixes{{{'x', 16}, {'o', 8}, {'b', 2}}};
  const std::string digits = digits_of(text);
  const bool negative = text.starts_with('-');
  if (digits.size() < 2 || digits[0] != '0') return integer_of(digits, 10, negative);
  for (const auto& [letter, base] : prefixes) {
    if ((digits[1] | 0x20) == letter) return integer_of(std::string_view(digits).substr(2), base, negative);
  }
  return integer_of(std::string_view(digits).substr(1), 8, negative);
}

bool looks_like_number(std::string_view text) {
  constexpr std::array<std::string_view, 6> not_finite{".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
  const std::string digits = digits_of(text);
  return parse_yaml_integer(text).has_value() || parse_number<double>(digits).has_value() ||
         is_one_of(digits, not_finite);
}

}  // namespace

void YamlValue::fail_with(const std::string& message) const {
  const std::string place = path_.empty() ? std::string() : path_ + ": ";
  bad_input("msjob", "{}:{}: {}{}", *file_, line_, place, message);
}

std::string_view YamlValue::what() const {
  switch (node_->kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
    case YamlNode::Kind::scalar:
      break;
  }
  if (!node_->plain) return "a text";
  return is_truth_value(node_->text) ? "true or false" : looks_like_number(node_->text) ? "a number" : "a text";
}

void YamlValue::require_kind(YamlNode::Kind kind, std::string_view wanted) const {
  if (node_->kind == kind) return;
  if (node_->kind == YamlNode::Kind::null) fail("is empty; give {}", wanted);
  fail("is {}; accepted: {}", what(), wanted);
}

YamlValue YamlValue::below(const YamlMember& member) const {
  return {member.value, *file_, member.line, path_of(member.key)};
}

std::optional<YamlValue> YamlValue::find(const std::string& key) const {
  require_kind(YamlNode::Kind::map, "a map");
  const YamlMember* const found = node_->find(key);
  if (found == nullptr || found->value.kind == YamlNode::Kind::null) return std::nullopt;
  return below(*found);
}

YamlValue YamlValue::require(const std::string& key) const {
  std::optional<YamlValue> found = find(key);
  if (!found.has_value()) {
    const YamlMember* const empty = node_->find(key);
    YamlValue(*node_, *file_, empty == nullptr ? line_ : empty->line, path_of(key)).fail("is missing");
  }
  return *std::move(found);
}

std::vector<std::pair<std::string, YamlValue>> YamlValue::members() const {
  require_kind(YamlNode::Kind::map, "a map");
  std::vector<std::pair<std::string, YamlValue>> values;
  values.reserve(node_->members.size());
  for (const YamlMember& member : node_->members) values.emplace_back(member.key, below(member));
  return values;
}

void YamlValue::accept_only(std::span<const std::string> keys) const {
  require_kind(YamlNode::Kind::map, "a map");
  for (const YamlMember& member : node_->members) {
    if (std::find(keys.begin(), keys.end(), member.key) != keys.end()) continue;
    bad_input("msjob", "{}:{}: {}: there is no such key{}", *file_, member.line, path_of(printable(member.key)),
              did_you_mean(member.key, keys));
  }
}

std::vector<YamlValue> YamlValue::items() const {
  require_kind(YamlNode::Kind::list, "a list");
  std::vector<YamlValue> values;
  values.reserve(node_->items.size());
  for (std::size_t i = 0; i < node_->items.size(); ++i) {
    values.push_back(YamlValue(node_->items[i], *file_, node_->items[i].line, fmt::format("{}[{}]", path_, i)));
  }
  return values;
}

std::string YamlValue::text() const {
  require_kind(YamlNode::Kind::scalar, "a text");
  if (node_->plain && (is_truth_value(node_->text) || looks_like_number(node_->text))) {
    fail("{} is {}, not a text; write '{}' in quotes", node_->text, what(), node_->text);
  }
  return node_->text;
}

bool YamlValue::boolean() const {
  require_kind(YamlNode::Kind::scalar, "true or false");
  if (!node_->plain || !is_truth_value(node_->text)) {
    fail("'{}' is {}; accepted: true or false", printable(node_->text), what());
  }
  return is_one_of(node_->text, truths);
}

bool YamlValue::is_integer() const {
  return node_->kind == YamlNode::Kind::scalar && node_->plain && parse_yaml_integer(node_->text).has_value();
}

std::int64_t YamlValue::integer(std::int64_t lowest, std::int64_t highest) const {
  const std::string range = fmt::format("a whole number from {} to {}", lowest, highest);
  require_kind(YamlNode::Kind::scalar, range);
  if (!node_->plain) fail("'{}' is a text; accepted: {}, without quotes", printable(node_->text), range);
  const std::optional<std::int64_t> number = parse_yaml_integer(node_->text);
  if (!number.has_value() || *number < lowest || *number > highest) {
    fail("{} is not accepted; accepted: {}", printable(node_->text), range);
  }
  return *number;
}

std::int64_t YamlValue::whole_number(std::int64_t lowest, std::int64_t highest) const {
  if (node_->plain && begins_with_zero(node_->text)) {
    fail("{} begins with 0, as octal numbers do; accepted: a whole number from {} to {} without it",
         printable(node_->text), lowest, highest);
  }
  return integer(lowest, highest);
}

std::string YamlValue::written() const {
  require_kind(YamlNode::Kind::scalar, "a number or a text");
  return is_integer() ? std::to_string(*parse_yaml_integer(node_->text)) : node_->text;
}

std::size_t YamlValue::one_of(std::initializer_list<std::string_view> words) const {
  const std::string given = text();
  const auto* const found = std::find(words.begin(), words.end(), given);
  if (found == words.end()) {
    std::vector<std::string> known(words.begin(), words.end());
    std::string accepted;
    for (const std::string& word : known) accepted += (accepted.empty() ? "" : ", ") + (word.empty() ? "''" : word);
    fail("'{}' is not known; accepted: {}{}", printable(given), accepted, did_you_mean(given, known));
  }
  return static_cast<std::size_t>(found - words.begin());
}

}  // namespace hcclsim::study
