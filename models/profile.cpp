#include "models/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::models {
namespace {

constexpr std::size_t max_gradients = 1'000'000;
constexpr Bytes max_bytes = Bytes{1} << 50;  // of one gradient: far above any network, far below overflow of a sum
constexpr Seconds max_ready_s = 1e6;
constexpr std::string_view blanks = " \t";  // a CR belongs to the end of the line

/// Walks over the lines of a CSV text and splits them into fields.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : rest_(text), file_(file) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
  }

  /// Moves to the next line with content; false at the end.
  bool next() {
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

  [[nodiscard]] const std::vector<std::string>& fields() const { return fields_; }
  [[nodiscard]] std::size_t line_number() const { return line_number_; }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("profile", "{}:{}: {}", file_, line_number_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void split(std::string_view line) {
    fields_.clear();
    while (true) {
      line = trimmed(line, blanks);
      fields_.push_back(line.starts_with('"') ? take_quoted(line) : take_plain(line));
      if (line.empty()) return;
      line.remove_prefix(1);  // the comma
    }
  }

  /// Takes the field in front of the next comma off `line`.
  static std::string take_plain(std::string_view& line) {
    const std::size_t end = std::min(line.find(','), line.size());
    const std::string_view field = trimmed(line.substr(0, end), blanks);
    line.remove_prefix(end);
    return std::string(field);
  }

  /// Takes a quoted field off `line`; two quotes stand for one.
  std::string take_quoted(std::string_view& line) const {
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
    return field;
  }

  std::string_view rest_;
  const std::string& file_;
  std::size_t line_number_ = 0;
  std::vector<std::string> fields_;
};

struct TimeColumn {
  std::string_view name;
  double seconds;
};

constexpr std::array<TimeColumn, 3> time_columns{{{"ready_us", 1e-6}, {"ready_ms", 1e-3}, {"ready_s", 1.0}}};

/// Which field is what.
struct Columns {
  std::size_t count;
  std::size_t name;
  std::size_t bytes;
  std::size_t ready;
  TimeColumn unit;
};

std::optional<std::size_t> find_column(const CsvReader& csv, std::string_view name) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < csv.fields().size(); ++i) {
    if (csv.fields()[i] != name) continue;
    if (found) csv.fail("column {} is given twice", name);
    found = i;
  }
  return found;
}

Columns read_header(const CsvReader& csv) {
  const std::string header = fmt::format("{}", fmt::join(csv.fields(), ", "));
  const auto name = find_column(csv, "name");
  const auto bytes = find_column(csv, "bytes");
  if (!name || !bytes) {
    csv.fail("the first line must name the columns name, bytes and ready_us (or ready_ms, ready_s); no {} in '{}'",
             name ? "bytes" : "name", header);
  }
  std::optional<std::size_t> ready;
  TimeColumn unit{};
  for (const TimeColumn& candidate : time_columns) {
    const auto column = find_column(csv, candidate.name);
    if (column && ready) csv.fail("both {} and {} are given; keep one", unit.name, candidate.name);
    if (column) {
      ready = column;
      unit = candidate;
    }
  }
  if (!ready) csv.fail("no column ready_us, ready_ms or ready_s in '{}'", header);
  return {.count = csv.fields().size(), .name = *name, .bytes = *bytes, .ready = *ready, .unit = unit};
}

Bytes parse_size(const CsvReader& csv, const std::string& text) {
  Bytes bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size() || bytes == 0 || bytes > max_bytes) {
    csv.fail("bytes must be an integer from 1 to {}, got '{}'", max_bytes, text);
  }
  return bytes;
}

Seconds parse_ready(const CsvReader& csv, const std::string& text, const TimeColumn& unit) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    csv.fail("{} must be a number, got '{}'", unit.name, text);
  }
  if (number < 0) csv.fail("{} must not be negative, got {}", unit.name, text);
  if (number * unit.seconds > max_ready_s) {
    csv.fail("{} = {} is more than {} s; is the unit right?", unit.name, text, max_ready_s);
  }
  return number * unit.seconds;
}

}  // namespace

GradientProfile parse_gradient_profile(std::string_view text, const std::string& file) {
  CsvReader csv(text, file);
  if (!csv.next()) {
    bad_input("profile", "{}: the file is empty; give a line 'name,bytes,ready_us' and one line per gradient", file);
  }
  const Columns columns = read_header(csv);
  const std::filesystem::path path(file);
  GradientProfile profile;
  profile.file = file;
  profile.title = (path.extension() == ".csv" ? path.stem() : path.filename()).string();
  std::unordered_map<std::string, std::size_t> line_of;
  while (csv.next()) {
    const std::vector<std::string>& fields = csv.fields();
    if (fields.size() != columns.count) {
      csv.fail("{} fields, but the first line names {} columns", fields.size(), columns.count);
    }
    if (profile.gradients.size() == max_gradients) csv.fail("more than {} gradients", max_gradients);
    ProfiledGradient gradient{.name = fields[columns.name],
                              .bytes = parse_size(csv, fields[columns.bytes]),
                              .ready_s = parse_ready(csv, fields[columns.ready], columns.unit),
                              .line = csv.line_number()};
    if (gradient.name.empty()) csv.fail("the name of the gradient is empty");
    const auto [first, is_new] = line_of.try_emplace(gradient.name, csv.line_number());
    if (!is_new) csv.fail("gradient '{}' was already given in line {}", gradient.name, first->second);
    if (!profile.gradients.empty() && gradient.ready_s < profile.gradients.back().ready_s) {
      csv.fail("gradient '{}' is ready before the one above, '{}'; rows must be in production order", gradient.name,
               profile.gradients.back().name);
    }
    profile.gradients.push_back(std::move(gradient));
  }
  if (profile.gradients.empty()) bad_input("profile", "{}: no gradients below the line of column names", file);
  return profile;
}

GradientProfile read_gradient_profile(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    bad_input("profile", "{}: is a folder, not a CSV file of gradients", file);
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) bad_input("profile", "{}: cannot be read: {}", file, std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (stream.bad()) bad_input("profile", "{}: cannot be read: {}", file, std::strerror(errno));
  return parse_gradient_profile(text, file);
}

}  // namespace hcclsim::models
