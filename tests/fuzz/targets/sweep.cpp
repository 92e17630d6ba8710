// Databases of sweeps with rows that something else has written, and the texts of grids.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "study/compare/sweep/curves.hpp"
#include "study/compare/sweep/database.hpp"
#include "study/compare/sweep/grid.hpp"
#include "study/compare/sweep/point.hpp"
#include "study/compare/sweep/ranking.hpp"
#include "study/compare/sweep/store.hpp"
#include "tests/fuzz/scratch_folder.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {
namespace {

constexpr std::array<std::string_view, 12> columns{"id",         "command",     "inputs",      "platform",
                                                   "version",    "status",      "result",      "error",
                                                   "error_kind", "exit_status", "step_time_s", "busbw_Bps"};

/// A database of two points of which every column can be anything.
class Rows {
 public:
  Rows() : path_(folder_.path_of("points.db")) {
    const study::SweepStore makes_the_tables(path_, study::SweepStore::Access::work);
  }

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Gives the columns of both rows the values of as many lines; an empty line leaves a column as it usually is.
  void set(std::string_view lines) const {
    const study::Database database(path_, study::Database::Access::write);
    database.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY");
    database.change([&] {
      database.execute(
          "DELETE FROM points; INSERT INTO points (number, id, command, inputs, platform, platform_hash, version) "
          "VALUES "
          R"((1, 'a', 'run', '{"batch": "16"}', 'lab.xml', 'hash', '1'), (2, 'b', 'run', '{"batch": "32"}', 'lab.xml', )"
          "'hash', '1')");
      for (const int number : {1, 2}) {
        for (const std::string_view column : columns) {
          const std::string_view value = lines.substr(0, lines.find('\n'));
          lines.remove_prefix(std::min(lines.size(), value.size() + 1));
          if (value.empty()) continue;
          study::Statement(database, fmt::format("UPDATE points SET {} = ? WHERE number = {}", column, number))
              .run({std::string(value)});
        }
      }
    });
  }

 private:
  ScratchFolder folder_;
  std::string path_;
};

/// A range, or several together, may have a million values, and rightly take their time and memory.
bool may_have_many_values(std::string_view text) {
  constexpr std::size_t most_bytes = 256;
  const auto ranges = std::count(text.begin(), text.end(), ':') / 2;
  if (ranges > 0 && text.find_first_of("eE") != std::string_view::npos) return true;
  const std::ptrdiff_t most_digits = ranges > 1 ? 1 : 3;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  constexpr std::ptrdiff_t most_ranges = 4;
  return text.size() > most_bytes || ranges > most_ranges ||
         (ranges > 0 && std::search_n(text.begin(), text.end(), most_digits + 1, true,
                                      [&](char c, bool) { return is_digit(c); }) != text.end());
}

}  // namespace

int fuzz_sweep_rows(Input input) {
  static const Rows rows;
  const std::string lines = text_of(input);
  return attempt([&] {
    rows.set(lines);
    study::SweepStore store(rows.path(), study::SweepStore::Access::read);
    static_cast<void>(store.counts());
    std::vector<study::StoredPoint> points;
    store.for_each([&](const study::StoredPoint& point) { points.push_back(point); }, true);
    for (const study::StoredPoint& point : points) {
      static_cast<void>(study::command_line(point.command, point.inputs));
      static_cast<void>(study::name_of_point(point.inputs, study::axes_of(points)));
    }
    for (const study::RankedGroup& group : study::ranked(points, std::nullopt)) {
      require(group.best != nullptr && group.points > 0, "a group without points");
    }
    for (const std::string_view column : study::columns_in_use(points)) {
      static_cast<void>(study::curves_of(points, column, "", rows.path()));
    }
  });
}

int fuzz_sweep_grid(Input input) {
  const std::string text = text_of(input);
  if (may_have_many_values(text)) return refused;
  int verdict = refused;
  const auto also = [&](const auto& read) {
    if (attempt(read) == accepted) verdict = accepted;
  };
  for (const study::ValueForm form : {study::ValueForm::word, study::ValueForm::list}) {
    also([&] {
      const std::vector<std::string> values = study::axis_values("axis", text, form);
      require(!values.empty(), "an axis without values");
      static_cast<void>(study::axis_numbers(values));
    });
  }
  also([&] {
    const std::string value = study::canonical_value(text);
    require(study::canonical_value(value) == value, "the canonical value has another canonical value");
  });
  also([&] { static_cast<void>(study::with_rest(text)); });
  also([&] { static_cast<void>(study::split_edits(text)); });
  also([&] { static_cast<void>(study::parse_shard(text)); });
  also([&] { static_cast<void>(study::parse_criterion(text)); });
  return verdict;
}

}  // namespace hcclsim::fuzz
