#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

/// A CSV file (RFC 4180 with any line end) whose first line names its columns, in any order. A byte order mark,
/// blanks and tabs around fields, empty lines and lines that begin with # are ignored; a quoted field ends in its line.
/// All errors are Error(bad_input) of the kind given by the reader's owner and begin with "FILE:LINE: ".
///
/// What spreadsheets make of such files is read, or refused where it could be misread: fields may be separated by
/// semicolons or tabs (what the first line has most of, or what a line `sep=;` before it says), and then numbers may
/// have a decimal comma; empty columns behind the last one and rows of empty fields do not count. Thousands separators,
/// decimal commas between commas, decimal commas and points in one file, and UTF-16 are errors.
namespace hcclsim {

class CsvFile {
 public:
  /// Reads the line of column names of `text`, the contents of `file`, which is for messages. Without such a line there
  /// are no columns.
  CsvFile(std::string_view text, std::string file, std::string kind);

  [[nodiscard]] const std::vector<std::string>& header() const { return header_; }
  /// The column of this name; fails if there are two.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// The same for a column that must be there; fails with the names that the file has.
  [[nodiscard]] std::size_t column(std::string_view name) const;
  /// The first of these names that is a column; versions of a program differ in how they name it.
  [[nodiscard]] std::optional<std::size_t> find_any(std::initializer_list<std::string_view> names) const;
  /// The same for a column that must be there; fails with the first name and those that the file has.
  [[nodiscard]] std::size_t any_column(std::initializer_list<std::string_view> names) const;
  /// All columns of this name, in their order.
  [[nodiscard]] std::vector<std::size_t> all(std::string_view name) const;

  /// Moves to the next row; false at the end. Fails if the row does not have one field per column.
  bool next();
  /// The same for files whose rows may lack fields at the end, which then read as `absent`.
  bool next_padded(std::string_view absent);
  [[nodiscard]] const std::string& field(std::size_t column) const { return fields_[column]; }
  /// The field with a decimal point, if it is a number with a decimal comma.
  [[nodiscard]] std::string decimal(std::size_t column) const;
  /// The field as a finite number.
  [[nodiscard]] double number(std::size_t column) const;
  /// The same for one that must not be negative.
  [[nodiscard]] double positive_or_zero(std::size_t column) const;
  /// The field as a whole number from 1 to `highest`.
  [[nodiscard]] std::uint64_t count(std::size_t column, std::uint64_t highest) const;
  [[nodiscard]] std::size_t line_number() const { return line_number_; }
  [[nodiscard]] const std::string& file() const { return file_; }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    constexpr std::size_t most = 600;  // characters of a message: the file may hold anything
    bad_input(kind_, "{}:{}: {}", file_, line_number_,
              printable(fmt::format(format, std::forward<Args>(args)...), most));
  }

 private:
  bool next_line();
  void find_separator();
  void drop_empty_end();
  void require_width() const;
  void split(std::string_view line);
  std::string take_plain(std::string_view& line) const;
  std::string take_quoted(std::string_view& line) const;

  std::string_view rest_;
  std::string file_;
  std::string kind_;
  std::size_t line_number_ = 0;
  char line_end_ = '\n';  ///< or a CR, of a file without LF
  char separator_ = ',';
  std::string_view blanks_ = " \t";  // a CR belongs to the end of the line
  mutable char decimal_sign_ =
      '\0';  // of the numbers that were read so far, where there is more than one to choose from
  std::vector<std::string> header_;
  std::vector<std::string> fields_;
};

}  // namespace hcclsim
