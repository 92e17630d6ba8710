#include "study/files/profile/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
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

Seconds read_duration(const CsvFile& csv, std::size_t column) {
  constexpr Seconds longest = 1e6;
  const Seconds duration = csv.positive_or_zero(column) * microsecond;
  if (duration > longest) {
    csv.fail("{} = {} is more than {} s; is the unit microseconds?", csv.header()[column], csv.field(column), longest);
  }
  return duration;
}

DeviceDate DeviceClock::read(const CsvFile& csv, std::size_t column) {
  constexpr std::int64_t longest_us = 1'000'000'000'000;
  constexpr std::int64_t fifteen_digits = 1'000'000'000'000'000;
  static_cast<void>(csv.positive_or_zero(column));
  const std::string& name = csv.header()[column];
  const std::string text = csv.decimal(column);
  if (text.find_first_not_of("0123456789.") != std::string::npos) {
    csv.fail("{}: write '{}' without exponent, with all its digits", name, text);
  }
  DeviceDate date;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, date.whole_us);
  if (error != std::errc()) csv.fail("{} = {} is no date in microseconds", name, text);
  if (rest != end) std::from_chars(rest, end, date.fraction_us);
  if (!first_us_.has_value()) first_us_ = date.whole_us;
  if (std::abs(date.whole_us - *first_us_) > longest_us) {
    csv.fail("{} = {} is more than {} s from the first date", name, text, longest_us / 1'000'000);
  }
  zero_us_ = std::min(zero_us_.value_or(date.whole_us), date.whole_us);
  if (date.whole_us >= fifteen_digits) {
    ++long_dates_;
    all_rounded_ = all_rounded_ && date.whole_us % 10 == 0 && date.fraction_us == 0;
  }
  return date;
}

Seconds DeviceClock::since_zero(const DeviceDate& date) const {
  return (static_cast<double>(date.whole_us - zero_us()) + date.fraction_us) * microsecond;
}

void DeviceClock::note_rounded(const std::string& file, std::vector<std::string>& notes) const {
  constexpr std::size_t least = 10;  // dates; that all of them end with 0 by chance has a probability of 1e-10
  if (!all_rounded_ || long_dates_ < least) return;
  notes.push_back(
      fmt::format("{}: all dates are multiples of 10 us: a spreadsheet, which keeps 15 digits, may have rounded them; "
                  "give the profiler's own file",
                  file));
}

}  // namespace hcclsim::study
