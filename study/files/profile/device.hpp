#pragma once

#include <cstddef>
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

/// The field's duration, written in microseconds; fails unless it is a number from 0 to 10^6 s.
[[nodiscard]] Seconds read_duration(const CsvFile& csv, std::size_t column);

/// A date in microseconds since 1970, such as 1699529623106750.930, which has more digits than a double holds.
struct DeviceDate {
  std::int64_t whole_us = 0;
  double fraction_us = 0;

  bool operator<(const DeviceDate& other) const {
    return whole_us < other.whole_us || (whole_us == other.whole_us && fraction_us < other.fraction_us);
  }
};

/// The dates of a device as the distance from the earliest of the file, to a nanosecond, whatever the order of its
/// rows.
class DeviceClock {
 public:
  /// The field's date; fails unless it is a number that is not negative, written without exponent, and within 10^6 s of
  /// the first that was read.
  [[nodiscard]] DeviceDate read(const CsvFile& csv, std::size_t column);
  /// Since the whole microsecond of the earliest date, when all have been read.
  [[nodiscard]] Seconds since_zero(const DeviceDate& date) const;
  /// The whole microseconds of the earliest date; 0 if none was read.
  [[nodiscard]] std::int64_t zero_us() const { return zero_us_.value_or(0); }
  /// Says in `notes` if a spreadsheet, which keeps 15 digits, has rounded the dates of `file`.
  void note_rounded(const std::string& file, std::vector<std::string>& notes) const;

 private:
  std::optional<std::int64_t> first_us_{};
  std::optional<std::int64_t> zero_us_{};
  std::size_t long_dates_ = 0;  ///< of more than 15 digits
  bool all_rounded_ = true;     ///< these, to 15 digits
};

}  // namespace hcclsim::study
