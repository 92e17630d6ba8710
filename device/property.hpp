#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

/// Reads figures from the properties of a platform file in place of their defaults, records which were missing, and
/// rejects bad ones with the name of their owner ("host npu-3") and property.
namespace hcclsim::device {

/// Finds a property by its key.
using PropertyLookup = std::function<std::optional<std::string>(std::string_view)>;

class PropertyReader {
 public:
  PropertyReader(std::string owner, PropertyLookup lookup) : owner_(std::move(owner)), lookup_(std::move(lookup)) {}

  /// An integer from 1 to 10^9. All readers return whether the property was there, and leave `value` alone if not.
  bool count(std::string_view key, std::uint32_t& value) {
    const std::optional<std::string> text = find(key);
    if (!text) return false;
    const double parsed = number(key, *text, 1, 1e9);
    if (parsed != std::floor(parsed)) reject(key, *text, "a positive integer");
    value = static_cast<std::uint32_t>(parsed);
    return true;
  }

  /// A plain number from `low` to `high`, multiplied by `unit`.
  bool real(std::string_view key, double low, double high, double unit, double& value) {
    const std::optional<std::string> text = find(key);
    if (!text) return false;
    value = number(key, *text, low, high) * unit;
    return true;
  }

  /// A quantity with its unit, above 0.
  template <typename Value>
  bool quantity(std::string_view key, Value (*parse)(std::string_view), Value& value) {
    const std::optional<std::string> text = find(key);
    if (!text) return false;
    try {
      value = parse(*text);
    } catch (const Error& error) {
      bad_input("platform", "{}: property {}: {}", owner_, key, error.what());
    }
    if (!(value > 0)) reject(key, *text, "more than 0");
    return true;
  }

  /// Keys that were asked for and not there.
  [[nodiscard]] const std::vector<std::string>& missing() const { return missing_; }

 private:
  std::optional<std::string> find(std::string_view key) {
    std::optional<std::string> text = lookup_(key);
    if (!text) missing_.emplace_back(key);
    return text;
  }

  double number(std::string_view key, const std::string& text, double low, double high) const {
    const std::optional<double> value = parse_number<double>(text);
    if (!value.has_value() || *value < low || *value > high) {
      reject(key, text, fmt::format("a number from {} to {}", low, high));
    }
    return *value;
  }

  [[noreturn]] void reject(std::string_view key, const std::string& text, const std::string& accepted) const {
    bad_input("platform", "{}: property {} is '{}', must be {}", owner_, key, text, accepted);
  }

  std::string owner_;
  PropertyLookup lookup_;
  std::vector<std::string> missing_;
};

}  // namespace hcclsim::device
