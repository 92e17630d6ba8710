#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"

/// What all commands print with. Numbers are formatted by fmt, which does not look at the locale.
namespace hcclsim::cli {

[[nodiscard]] constexpr const char* on_off(bool is_on) { return is_on ? "on" : "off"; }

/// Writes to standard output; throws Error(bad_input) of kind "output" if it is closed or the disk is full, "pipe" for
/// a pipe that nobody reads any more: the command then ends quietly.
void print(std::string_view text);
/// Writes to standard error. Where nobody reads it, the exit status is all that is left to tell.
void print_apart(const std::string& text);
/// To a file, whole or not at all, or to standard output if it is "-".
void write_output(const std::string& file, std::string_view text);

/// Columns aligned for reading, two spaces apart. Widths count characters, not bytes.
class Table {
 public:
  enum class Align : bool { left, right };
  struct Column {
    std::string title;
    Align align = Align::right;
    std::size_t least_width = 0;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// "<links|platform|<fitted": titles, "<" before those of columns that are aligned to the left.
  explicit Table(std::string_view titles);

  /// One cell per column.
  void add_row(std::vector<std::string> cells);
  /// The titles and the rows, each line indented and without trailing blanks.
  [[nodiscard]] std::string to_string(std::string_view indent = "") const;

  /// The titles alone, and a row of a table whose rows are printed as they come: columns have their least widths then,
  /// and a longer cell moves those behind it.
  [[nodiscard]] std::string titles() const;
  [[nodiscard]] std::string row(const std::vector<std::string>& cells) const;

 private:
  [[nodiscard]] std::vector<std::string> title_cells() const;
  /// Of the titles, and at least as wide as asked for.
  [[nodiscard]] std::vector<std::size_t> least_widths() const;
  [[nodiscard]] std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A field of a CSV file (RFC 4180): quoted if it holds a comma, a quote or a line break.
[[nodiscard]] std::string csv_field(std::string_view text);

/// A fraction in percent, "+1.25"; "0.00" without a sign, "–" if it is not finite.
[[nodiscard]] std::string signed_percent(double fraction);

/// "12.345": milliseconds with three decimals.
[[nodiscard]] std::string milliseconds(Seconds time);
/// "12.34": microseconds with that number of decimals.
[[nodiscard]] std::string microseconds(Seconds time, int decimals);
inline constexpr double microseconds_per_second = 1e6;

}  // namespace hcclsim::cli
