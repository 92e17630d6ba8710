#include "device/property.hpp"

#include <cmath>

#include "base/text.hpp"

namespace hcclsim::device {

bool PropertyReader::count(std::string_view key, std::uint32_t& value) {
  const std::optional<std::string> text = find(key);
  if (!text) return false;
  const double parsed = number(key, *text, 1, 1e9);
  if (parsed != std::floor(parsed)) reject(key, *text, "a positive integer");
  value = static_cast<std::uint32_t>(parsed);
  return true;
}

bool PropertyReader::real(std::string_view key, double low, double high, double unit, double& value) {
  const std::optional<std::string> text = find(key);
  if (!text) return false;
  value = number(key, *text, low, high) * unit;
  return true;
}

std::optional<std::string> PropertyReader::find(std::string_view key) {
  std::optional<std::string> text = lookup_(key);
  if (!text) missing_.emplace_back(key);
  return text;
}

double PropertyReader::number(std::string_view key, const std::string& text, double low, double high) const {
  const std::optional<double> value = parse_number<double>(text);
  if (!value.has_value() || *value < low || *value > high) {
    reject(key, text, fmt::format("a number from {} to {}", low, high));
  }
  return *value;
}

void PropertyReader::reject(std::string_view key, const std::string& text, const std::string& accepted) const {
  bad_input("platform", "{}: property {} is '{}', must be {}", owner_, key, text, accepted);
}

}  // namespace hcclsim::device
