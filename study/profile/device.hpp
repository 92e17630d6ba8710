#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.hpp"
#include "base/units.hpp"

/// A profiler's file may have the rows of several devices, each with its own streams and dates. They do the same in
/// data-parallel training; one of them stands for the step.
namespace hcclsim::study {

/// The device with the lowest number of those of the rows, of which there must be one. If there are others, `notes`
/// says that the `rows` of the file are its.
[[nodiscard]] std::string first_device(std::span<const std::string> devices, std::string_view rows,
                                       const std::string& file, std::vector<std::string>& notes);

/// Dates of a device in microseconds since 1970, such as 1699529623106750.930, have more digits than a double holds.
/// They are read as the distance from the first one, to a nanosecond.
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
