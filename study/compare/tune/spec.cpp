#include "study/compare/tune/spec.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

/// A factor of 0.001 to 1000 that is the whole text.
std::optional<double> parse_factor(std::string_view text) {
  const std::optional<double> factor = parse_number<double>(text);
  return factor >= 1e-3 && factor <= 1e3 ? factor : std::nullopt;
}

}  // namespace

BandwidthRange parse_bandwidth_range(std::string_view text) {
  for (int kind = 0; kind <= static_cast<int>(sim::LinkKind::other); ++kind) {
    if (text == name_of(static_cast<sim::LinkKind>(kind))) return {.kind = static_cast<sim::LinkKind>(kind)};
  }
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::optional<double> low = parse_factor(text.substr(0, colon));
  const std::optional<double> high = colon < text.size() ? parse_factor(text.substr(colon + 1)) : std::nullopt;
  if (!low.has_value() || !high.has_value() || *low >= *high) {
    bad_input(
        "option",
        "'{}' is no range: give factors LOW:HIGH from 0.001 to 1000, such as 0.5:2, or a kind of link whose range "
        "the platform gives: hccs, pcie, sio, ub, roce, other",
        text);
  }
  return {.low = *low, .high = *high};
}

}  // namespace hcclsim::study
