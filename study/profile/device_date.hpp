#pragma once

#include <cstdint>
#include <optional>

#include "base/csv.hpp"
#include "base/units.hpp"

/// Dates of a device in microseconds since 1970, such as 1699529623106750.930, have more digits than a double holds.
/// They are read as the distance from the first one, to a nanosecond.
namespace hcclsim::study {

class DeviceClock {
 public:
  /// The field's date in seconds since the first date that was read; fails unless it is a number that is not negative,
  /// written without exponent, and within 10^6 s of the first.
  [[nodiscard]] Seconds date(const CsvFile& csv, std::size_t column);
  /// The whole microseconds of the first date; 0 before it was read.
  [[nodiscard]] std::int64_t zero_us() const { return zero_us_.value_or(0); }

 private:
  std::optional<std::int64_t> zero_us_{};
};

}  // namespace hcclsim::study
