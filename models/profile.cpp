#include "models/profile.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/csv.hpp"
#include "base/input_file.hpp"

namespace hcclsim::models {
namespace {

constexpr std::size_t max_gradients = 1'000'000;
constexpr Bytes max_bytes = Bytes{1} << 50;  // of one gradient: far above any network, far below overflow of a sum
constexpr Seconds max_ready_s = 1e6;

struct TimeColumn {
  std::string_view name;
  double seconds;
};

constexpr std::array<TimeColumn, 3> time_columns{{{"ready_us", 1e-6}, {"ready_ms", 1e-3}, {"ready_s", 1.0}}};

/// Which field is what.
struct Columns {
  std::size_t name;
  bool numbered;  ///< `name` is the column index
  std::size_t bytes;
  std::size_t ready;
  TimeColumn unit;
};

Columns read_header(const CsvFile& csv) {
  const std::string header = fmt::format("{}", fmt::join(csv.header(), ", "));
  const auto name = csv.find("name");
  const auto index = csv.find("index");
  const auto bytes = csv.find("bytes");
  if (csv.find("stage")) csv.fail("it has the gradients of several stages; a run of measured gradients has one stage");
  if ((!name && !index) || !bytes) {
    csv.fail(
        "the first line must name the columns name (or index), bytes and ready_us (or ready_ms, ready_s); no {} in "
        "'{}'",
        name || index ? "bytes" : "name", header);
  }
  std::optional<std::size_t> ready;
  TimeColumn unit{};
  for (const TimeColumn& candidate : time_columns) {
    const auto column = csv.find(candidate.name);
    if (column && ready) csv.fail("both {} and {} are given; keep one", unit.name, candidate.name);
    if (column) {
      ready = column;
      unit = candidate;
    }
  }
  if (!ready) csv.fail("no column ready_us, ready_ms or ready_s in '{}'", header);
  return {.name = name.value_or(index.value_or(0)),
          .numbered = !name.has_value(),
          .bytes = *bytes,
          .ready = *ready,
          .unit = unit};
}

Seconds parse_ready(const CsvFile& csv, const Columns& columns) {
  const Seconds ready = csv.positive_or_zero(columns.ready) * columns.unit.seconds;
  if (ready > max_ready_s) {
    csv.fail("{} = {} is more than {} s; is the unit right?", columns.unit.name, csv.field(columns.ready), max_ready_s);
  }
  return ready;
}

/// The name of the row's gradient, the `count`-th; a column of numbers only counts.
std::string parse_name(const CsvFile& csv, const Columns& columns, std::size_t count) {
  const std::string& text = csv.field(columns.name);
  if (!columns.numbered) {
    if (text.empty()) csv.fail("the name of the gradient is empty");
    return text;
  }
  if (text != fmt::to_string(count)) {
    csv.fail("index must count the gradients in production order, here {}, got '{}'", count, text);
  }
  return "gradient " + text;
}

}  // namespace

GradientProfile parse_gradient_profile(std::string_view text, const std::string& file) {
  CsvFile csv(text, file, "profile");
  if (csv.header().empty()) {
    bad_input("profile", "{}: the file is empty; give a line 'name,bytes,ready_us' and one line per gradient", file);
  }
  const Columns columns = read_header(csv);
  const std::filesystem::path path(file);
  GradientProfile profile;
  profile.file = file;
  profile.title = (path.extension() == ".csv" ? path.stem() : path.filename()).string();
  std::unordered_map<std::string, std::size_t> line_of;
  while (csv.next()) {
    if (profile.gradients.size() == max_gradients) csv.fail("more than {} gradients", max_gradients);
    ProfiledGradient gradient{.name = parse_name(csv, columns, profile.gradients.size()),
                              .bytes = csv.count(columns.bytes, max_bytes),
                              .ready_s = parse_ready(csv, columns),
                              .line = csv.line_number()};
    const auto [first, is_new] = line_of.try_emplace(gradient.name, csv.line_number());
    if (!is_new) csv.fail("'{}' was already given in line {}", gradient.name, first->second);
    if (!profile.gradients.empty() && gradient.ready_s < profile.gradients.back().ready_s) {
      csv.fail("'{}' is ready before the one above, '{}'; rows must be in production order", gradient.name,
               profile.gradients.back().name);
    }
    profile.gradients.push_back(std::move(gradient));
  }
  if (profile.gradients.empty()) bad_input("profile", "{}: no gradients below the line of column names", file);
  return profile;
}

GradientProfile read_gradient_profile(const std::string& file) {
  return parse_gradient_profile(read_text_file(file, "profile"), file);
}

}  // namespace hcclsim::models
