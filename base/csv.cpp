#include "base/csv.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"

namespace hcclsim {
namespace {

constexpr std::string_view blanks = " \t";  // a CR belongs to the end of the line

/// Takes the field in front of the next comma off `line`.
std::string take_plain(std::string_view& line) {
  const std::size_t end = std::min(line.find(','), line.size());
  const std::string_view field = trimmed(line.substr(0, end), blanks);
  line.remove_prefix(end);
  return std::string(field);
}

}  // namespace

CsvFile::CsvFile(std::string_view text, std::string file, std::string kind)
    : rest_(text), file_(std::move(file)), kind_(std::move(kind)) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
  if (next_line()) header_ = fields_;
}

std::optional<std::size_t> CsvFile::find(std::string_view name) const {
  const std::vector<std::size_t> columns = all(name);
  if (columns.size() > 1) fail("column {} is given twice", name);
  return columns.empty() ? std::nullopt : std::optional(columns.front());
}

std::size_t CsvFile::column(std::string_view name) const {
  const auto found = find(name);
  if (!found.has_value()) fail("no column {} in '{}'", name, printable(fmt::format("{}", fmt::join(header_, ", "))));
  return *found;
}

std::optional<std::size_t> CsvFile::find_any(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    if (const auto found = find(name); found.has_value()) return found;
  }
  return std::nullopt;
}

std::size_t CsvFile::any_column(std::initializer_list<std::string_view> names) const {
  const auto found = find_any(names);
  return found.has_value() ? *found : column(*names.begin());
}

std::vector<std::size_t> CsvFile::all(std::string_view name) const {
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (header_[i] == name) columns.push_back(i);
  }
  return columns;
}

bool CsvFile::next_padded(std::string_view absent) {
  if (!next_line()) return false;
  while (fields_.size() < header_.size()) fields_.emplace_back(absent);
  require_width();
  return true;
}

bool CsvFile::next() {
  if (!next_line()) return false;
  require_width();
  return true;
}

void CsvFile::require_width() const {
  if (fields_.size() != header_.size()) {
    fail("{} fields, but the first line names {} columns", fields_.size(), header_.size());
  }
}

double CsvFile::number(std::size_t column) const {
  const std::string& text = fields_[column];
  const std::optional<double> number = parse_number<double>(text);
  if (!number.has_value()) fail("{} must be a number, got '{}'", header_[column], printable(text));
  return *number;
}

std::uint64_t CsvFile::count(std::size_t column, std::uint64_t highest) const {
  const std::optional<std::uint64_t> count = parse_number<std::uint64_t>(fields_[column]);
  if (!count.has_value() || *count == 0 || *count > highest) {
    fail("{} must be an integer from 1 to {}, got '{}'", header_[column], highest, fields_[column]);
  }
  return *count;
}

double CsvFile::positive_or_zero(std::size_t column) const {
  const double value = number(column);
  if (value < 0) fail("{} must not be negative, got {}", header_[column], fields_[column]);
  return value;
}

bool CsvFile::next_line() {
  while (!rest_.empty()) {
    ++line_number_;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trimmed(line, blanks);
    if (line.empty() || line.front() == '#') continue;
    split(line);
    return true;
  }
  return false;
}

void CsvFile::split(std::string_view line) {
  fields_.clear();
  while (true) {
    line = trimmed(line, blanks);
    fields_.push_back(line.starts_with('"') ? take_quoted(line) : take_plain(line));
    if (line.empty()) return;
    line.remove_prefix(1);  // the comma
  }
}

/// Takes a quoted field off `line`; two quotes stand for one.
std::string CsvFile::take_quoted(std::string_view& line) const {
  std::string field;
  std::size_t i = 1;
  while (true) {
    if (i == line.size()) fail("the quote of {} is not closed in this line", line);
    if (line[i] == '"') {
      if (i + 1 == line.size() || line[i + 1] != '"') break;
      ++i;
    }
    field += line[i++];
  }
  line = trimmed(line.substr(i + 1), blanks);
  if (!line.empty() && line.front() != ',') fail("after the quoted field \"{}\" a comma must follow", field);
  return std::string(trimmed(field, blanks));
}

}  // namespace hcclsim
