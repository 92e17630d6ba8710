#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The grid of a sweep: axes, each a name with the values that it takes, as text. A point has one value of every axis.
/// Users write the values of an axis as one text:
///
///     16,32,64                 three values
///     80,20;60,40              two values of an option that takes lists
///     50:99:1                  a range: first, last, step; xF in place of the step multiplies by F
///     10GBps:40GBps:5GBps      the same with a unit
///     1K:64M:x4                of an option that takes sizes: 1K, 4K, 16K, … 16M, 64M
///     20:40:10,5               of an option that takes lists: the lists 20,5 and 30,5 and 40,5
namespace hcclsim::study {

struct Axis {
  std::string name;
  std::vector<std::string> values;  ///< in the order in which they were given, none twice
};

/// Words and sizes of collectives are separated by commas; lists have commas in them.
enum class ValueForm : std::uint8_t { word, list, size };

/// The values that a text stands for; throws Error(bad_input, "sweep") that names the axis for empty values, ranges
/// that do not end, and more than a million values, which are counted, not made.
[[nodiscard]] std::vector<std::string> axis_values(const std::string& axis, std::string_view text, ValueForm form);

/// A value, or a list of them, with numbers as they are usually written, so that one value has one text: "32" for
/// "032", "1.5GBps" for "1.50GBps". Other text stays as it is.
[[nodiscard]] std::string canonical_value(std::string_view value);

/// Percentages with what is missing to 100 behind them: "60,20" becomes "60,20,20". A text that is no list of numbers
/// below 100 in sum stays as it is.
[[nodiscard]] std::string with_rest(const std::string& percentages);

/// Values of platform edits, "a=1,2,b=3", as one text per target: "a=1,2" and "b=3".
[[nodiscard]] std::vector<std::string> split_edits(const std::string& text);

class Grid {
 public:
  /// Adds an axis behind the others, or replaces the values of the one that has this name.
  void set(Axis axis);

  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  /// Number of points: 1 without any axis. Throws Error(bad_input, "sweep") for more than a million.
  [[nodiscard]] std::size_t size() const;
  /// Name and value of every axis at a point; the last axis runs fastest.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> at(std::size_t point) const;

 private:
  std::vector<Axis> axes_;
};

}  // namespace hcclsim::study
