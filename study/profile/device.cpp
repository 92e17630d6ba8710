#include "study/profile/device.hpp"

#include <charconv>
#include <cmath>
#include <set>

namespace hcclsim::study {
namespace {

/// Whole numbers by their value.
struct IsLower {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
};

}  // namespace

std::string first_device(std::span<const std::string> devices, std::string_view rows, const std::string& file,
                         std::vector<std::string>& notes) {
  const std::set<std::string, IsLower> all(devices.begin(), devices.end());
  if (all.size() > 1) {
    notes.push_back(
        fmt::format("{}: {} of device {}; those of {} more are left out", file, rows, *all.begin(), all.size() - 1));
  }
  return *all.begin();
}

Seconds DeviceClock::date(const CsvFile& csv, std::size_t column) {
  constexpr Seconds longest = 1e6;
  static_cast<void>(csv.positive_or_zero(column));
  const std::string& name = csv.header()[column];
  const std::string& text = csv.field(column);
  if (text.find_first_not_of("0123456789.") != std::string::npos)
    csv.fail("{}: write '{}' without exponent", name, text);
  std::int64_t whole_us = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, whole_us);
  if (error != std::errc()) csv.fail("{} = {} is no date in microseconds", name, text);
  double fraction_us = 0;
  if (rest != end) std::from_chars(rest, end, fraction_us);
  if (!zero_us_.has_value()) zero_us_ = whole_us;
  const Seconds date = (static_cast<double>(whole_us - *zero_us_) + fraction_us) * microsecond;
  if (std::abs(date) > longest) csv.fail("{} = {} is more than {} s from the first date", name, text, longest);
  return date;
}

}  // namespace hcclsim::study
