#include "cli/terminal/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "base/error.hpp"
#include "base/output_file.hpp"

namespace hcclsim::cli {
namespace {

/// Characters of a UTF-8 text: bytes that do not continue a character.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

}  // namespace

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written && errno == EPIPE) bad_input("pipe", "nobody reads what is printed");
  if (!written) bad_input("output", "cannot write to standard output: {}", std::strerror(errno));
}

void print_apart(const std::string& text) { std::ignore = std::fputs(text.c_str(), stderr); }

void write_output(const std::string& file, std::string_view text) {
  if (file == "-") {
    print(text);
  } else {
    write_file_atomically(file, text);
  }
}

Table::Table(std::string_view titles) {
  for (const std::string_view title : split(titles, '|')) {
    const bool left = title.starts_with('<');
    columns_.push_back({std::string(title.substr(left ? 1 : 0)), left ? Align::left : Align::right});
  }
}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) internal_error("{} cells for {} columns", cells.size(), columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::to_string(std::string_view indent) const {
  std::vector<std::size_t> widths = least_widths();
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < columns_.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text = std::string(indent) + line(title_cells(), widths);
  for (const auto& row : rows_) text.append(indent).append(line(row, widths));
  return text;
}

std::string Table::titles() const { return line(title_cells(), least_widths()); }

std::string Table::row(const std::vector<std::string>& cells) const { return line(cells, least_widths()); }

std::vector<std::string> Table::title_cells() const {
  std::vector<std::string> cells;
  for (const Column& column : columns_) cells.push_back(column.title);
  return cells;
}

std::vector<std::size_t> Table::least_widths() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(std::max(column.least_width, width(column.title)));
  return widths;
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const {
  std::string line;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string padding(widths[i] - std::min(widths[i], width(cells[i])), ' ');
    if (i > 0) line += "  ";
    line += columns_[i].align == Align::left ? cells[i] + padding : padding + cells[i];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char letter : text) {
    if (letter == '"') field += '"';
    field += letter;
  }
  return field + '"';
}

std::string signed_percent(double fraction) {
  constexpr double shown = 0.00005;
  if (!std::isfinite(fraction)) return "–";
  return std::abs(fraction) < shown ? "0.00" : fmt::format("{:+.2f}", fraction * 100);
}

std::string milliseconds(Seconds time) { return fmt::format("{:.3f}", time * 1e3); }

std::string microseconds(Seconds time, int decimals) { return fmt::format("{:.{}f}", time / microsecond, decimals); }

}  // namespace hcclsim::cli
