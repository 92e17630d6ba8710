#include "base/csv.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"

namespace hcclsim {
namespace {

/// How often each of the separators is in the line, quoted fields left out; the most frequent one, a comma if none is.
char most_frequent_separator(std::string_view line) {
  char best = ',';
  std::ptrdiff_t most = 0;
  std::string outside;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (!quoted) outside += c;
  }
  for (const char separator : {',', ';', '\t'}) {
    const auto count = std::count(outside.begin(), outside.end(), separator);
    if (count <= most) continue;
    best = separator;
    most = count;
  }
  return best;
}

}  // namespace

CsvFile::CsvFile(std::string_view text, std::string file, std::string kind)
    : rest_(text), file_(std::move(file)), kind_(std::move(kind)) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (rest_.starts_with("\xFF\xFE") || rest_.starts_with("\xFE\xFF")) {
    line_number_ = 1;
    fail("the text is UTF-16; save it as 'CSV UTF-8'");
  }
  if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
  if (rest_.find('\n') == std::string_view::npos) line_end_ = '\r';
  find_separator();
  if (!next_line()) return;
  while (fields_.size() > 1 && fields_.back().empty()) fields_.pop_back();
  header_ = fields_;
}

/// By the line of column names, or by a spreadsheet's line in front of it, which is taken off.
void CsvFile::find_separator() {
  std::string_view ahead = rest_;
  while (!ahead.empty()) {
    const std::size_t end = std::min(ahead.find(line_end_), ahead.size());
    const std::string_view line = trimmed(ahead.substr(0, end));
    ahead.remove_prefix(std::min(end + 1, ahead.size()));
    if (line.empty() || line.front() == '#') {
      ++line_number_;
      rest_ = ahead;
      continue;
    }
    constexpr std::string_view announced = "sep=";
    if (line.starts_with(announced) && line.size() <= announced.size() + 1) {
      separator_ = line.size() > announced.size() ? line.back() : '\t';  // the tab was trimmed off
      ++line_number_;
      rest_ = ahead;
    } else {
      separator_ = most_frequent_separator(line);
    }
    break;
  }
  if (separator_ == '\t') blanks_ = " ";
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

/// Takes empty fields behind the last column off.
void CsvFile::drop_empty_end() {
  while (fields_.size() > header_.size() && fields_.back().empty()) fields_.pop_back();
}

bool CsvFile::next_padded(std::string_view absent) {
  if (!next_line()) return false;
  drop_empty_end();
  while (fields_.size() < header_.size()) fields_.emplace_back(absent);
  require_width();
  return true;
}

bool CsvFile::next() {
  if (!next_line()) return false;
  drop_empty_end();
  require_width();
  return true;
}

void CsvFile::require_width() const {
  if (fields_.size() != header_.size()) {
    fail("{} fields, but the first line names {} columns", fields_.size(), header_.size());
  }
}

std::string CsvFile::decimal(std::size_t column) const {
  std::string text = fields_[column];
  const auto commas = std::count(text.begin(), text.end(), ',');
  const auto points = std::count(text.begin(), text.end(), '.');
  if (commas + points == 0) return text;
  constexpr std::string_view part_of_number = "0123456789+-.,eE";
  if (text.find_first_not_of(part_of_number) != std::string::npos) return text;
  if (commas + points > 1 || (commas > 0 && separator_ == ',')) {
    fail("{} = '{}': write numbers without thousands separators and with a decimal point", header_[column], text);
  }
  const char sign = commas > 0 ? ',' : '.';
  if (separator_ != ',' && decimal_sign_ != '\0' && decimal_sign_ != sign) {
    fail(
        "{} = '{}', but numbers above have a decimal {}: write numbers without thousands separators and all with a "
        "decimal point",
        header_[column], text, decimal_sign_ == ',' ? "comma" : "point");
  }
  decimal_sign_ = sign;
  std::replace(text.begin(), text.end(), ',', '.');
  return text;
}

double CsvFile::number(std::size_t column) const {
  const std::optional<double> number = parse_number<double>(decimal(column));
  if (!number.has_value()) fail("{} must be a number, got '{}'", header_[column], printable(fields_[column]));
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
    const std::size_t end = std::min(rest_.find(line_end_), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trimmed(line, blanks_);
    if (line.empty() || line.front() == '#') continue;
    split(line);
    const bool is_row = std::any_of(fields_.begin(), fields_.end(), [](const auto& field) { return !field.empty(); });
    if (is_row) return true;
  }
  return false;
}

void CsvFile::split(std::string_view line) {
  fields_.clear();
  while (true) {
    line = trimmed(line, blanks_);
    fields_.push_back(line.starts_with('"') ? take_quoted(line) : take_plain(line));
    if (line.empty()) return;
    line.remove_prefix(1);  // the separator
  }
}

/// Takes the field in front of the next separator off `line`.
std::string CsvFile::take_plain(std::string_view& line) const {
  const std::size_t end = std::min(line.find(separator_), line.size());
  const std::string_view field = trimmed(line.substr(0, end), " \t");
  line.remove_prefix(end);
  return std::string(field);
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
  line = trimmed(line.substr(i + 1), blanks_);
  if (!line.empty() && line.front() != separator_) {
    fail("after the quoted field \"{}\" a {} must follow", field,
         separator_ == ','   ? "comma"
         : separator_ == ';' ? "semicolon"
                             : "tab");
  }
  return std::string(trimmed(field, " \t"));
}

}  // namespace hcclsim
