#include "study/jobs/job/msjob/quantity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace hcclsim::study {
namespace {

struct QuantitySuffix {
  std::string_view name;
  double factor;
};

constexpr double kibi = 1024;
constexpr std::array<QuantitySuffix, 16> quantity_suffixes{{{"n", 1e-9},
                                                            {"u", 1e-6},
                                                            {"m", 1e-3},
                                                            {"", 1},
                                                            {"k", 1e3},
                                                            {"M", 1e6},
                                                            {"G", 1e9},
                                                            {"T", 1e12},
                                                            {"P", 1e15},
                                                            {"E", 1e18},
                                                            {"Ki", kibi},
                                                            {"Mi", kibi* kibi},
                                                            {"Gi", kibi* kibi* kibi},
                                                            {"Ti", kibi* kibi* kibi* kibi},
                                                            {"Pi", kibi* kibi* kibi* kibi* kibi},
                                                            {"Ei", kibi* kibi* kibi* kibi* kibi* kibi}}};

}  // namespace

std::optional<std::uint64_t> parse_k8s_quantity(std::string_view text) {
  // The number ends where a suffix begins; "1e3" and "1E3" are numbers, "1E" is not.
  std::size_t digits = 0;
  while (digits < text.size() && (text[digits] == '.' || (text[digits] >= '0' && text[digits] <= '9'))) ++digits;
  std::string_view number = text.substr(0, digits);
  std::string_view rest = text.substr(digits);
  if (rest.size() > 1 && (rest[0] == 'e' || rest[0] == 'E') && parse_number<int>(rest.substr(1)).has_value()) {
    number = text;
    rest = {};
  }
  const auto* const suffix = std::find_if(quantity_suffixes.begin(), quantity_suffixes.end(),
                                          [&](const QuantitySuffix& one) { return one.name == rest; });
  const std::optional<double> value = parse_number<double>(number);
  if (suffix == quantity_suffixes.end() || !value.has_value()) return std::nullopt;
  constexpr double thousandths = 1000;
  // A decimal such as 0.1 is not exact: what it is off must not be rounded up.
  const double exact = *value * suffix->factor * thousandths;
  const double amount = std::abs(exact - std::round(exact)) < 1e-6 ? std::round(exact) : std::ceil(exact);
  constexpr double most = 9e18;
  if (amount > most) return std::nullopt;
  return static_cast<std::uint64_t>(amount);
}

}  // namespace hcclsim::study
