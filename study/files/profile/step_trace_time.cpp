#include "study/files/profile/step_trace_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/csv.hpp"
#include "study/files/profile/device.hpp"

namespace hcclsim::study {
namespace {

struct TimeColumns {
  std::size_t step;
  std::size_t computing;
  std::size_t exposed;
  std::size_t overlapped;
  std::size_t communication;
  std::size_t free;
  std::optional<std::size_t> device;
  std::optional<std::size_t> type;  ///< "rank" or "stage"
};

TimeColumns read_time_header(const CsvFile& csv) {
  TimeColumns columns{.step = csv.column("Step"),
                      .computing = csv.column("Computing"),
                      .exposed = csv.column("Communication(Not Overlapped)"),
                      .overlapped = csv.column("Overlapped"),
                      .communication = csv.column("Communication"),
                      .free = csv.column("Free"),
                      .device = csv.find_any({"Device_id", "Device ID"}),
                      .type = csv.find("Type")};
  if (columns.type.has_value()) columns.device = csv.column("Index");
  return columns;
}

/// A step of a rank.
struct TimedRow {
  std::string rank;
  std::string step;
  std::size_t line = 0;
  Seconds computing = 0;
  Seconds exposed = 0;
  Seconds overlapped = 0;
  Seconds communication = 0;
  Seconds free = 0;

  /// The parts that follow each other.
  [[nodiscard]] Seconds whole() const { return computing + exposed + free; }
};

TimedRow read_timed_row(const CsvFile& csv, const TimeColumns& columns) {
  const auto time = [&](std::size_t column) { return read_duration(csv, column); };
  TimedRow row{.rank = columns.device.has_value() ? csv.field(*columns.device) : "",
               .step = csv.field(columns.step),
               .line = csv.line_number(),
               .computing = time(columns.computing),
               .exposed = time(columns.exposed),
               .overlapped = time(columns.overlapped),
               .communication = time(columns.communication),
               .free = time(columns.free)};
  if (row.step.empty()) {
    csv.fail(
        "Step is empty: the row is a sum over all that was profiled; profile with a schedule, so that each step has "
        "its row");
  }
  constexpr double rounding = 1e-3;
  const Seconds sum = row.exposed + row.overlapped;
  if (std::abs(sum - row.communication) > std::max(microsecond, rounding * row.communication)) {
    csv.fail("Communication is {}, but Communication(Not Overlapped) and Overlapped are {} and {}",
             csv.field(columns.communication), csv.field(columns.exposed), csv.field(columns.overlapped));
  }
  if (row.computing == 0) csv.fail("Computing is 0: nothing was computed in step {}", row.step);
  return row;
}

/// Says how far the ranks are apart in what they compute, and which one is slowest.
void note_ranks(const std::vector<TimedRow>& rows, StepTraceTime& result) {
  std::map<std::string, std::pair<Seconds, double>> computing;  // sum and number of steps, by rank
  for (const TimedRow& row : rows) {
    auto& [sum, count] = computing[row.rank];
    sum += row.computing;
    ++count;
  }
  if (computing.size() < 2) return;
  const auto mean = [](const auto& rank) { return rank.second.first / rank.second.second; };
  const auto [fastest, slowest] = std::minmax_element(computing.begin(), computing.end(),
                                                      [&](const auto& a, const auto& b) { return mean(a) < mean(b); });
  result.notes.push_back(fmt::format("{}: Computing is from {:.3f} ms (rank {}) to {:.3f} ms (rank {})", result.file,
                                     mean(*fastest) * 1e3, fastest->first, mean(*slowest) * 1e3, slowest->first));
}

Phases mean_phases(const std::vector<TimedRow>& rows) {
  TimedRow sum;
  for (const TimedRow& row : rows) {
    sum.computing += row.computing;
    sum.exposed += row.exposed;
    sum.overlapped += row.overlapped;
    sum.communication += row.communication;
    sum.free += row.free;
  }
  const auto count = static_cast<double>(rows.size());
  Phases phases{.step = sum.whole() / count,
                .computing = sum.computing / count,
                .communication = sum.communication / count,
                .exposed = sum.exposed / count,
                .free = sum.free / count};
  constexpr double chance = 0.01;  // of the communication, that kernels such as copies run beside it
  if (sum.communication > 0) phases.overlapped = sum.overlapped > chance * sum.communication;
  return phases;
}

}  // namespace

StepTraceTime parse_step_trace_time(std::string_view text, const std::string& file) {
  CsvFile csv(text, file, "profile");
  const TimeColumns columns = read_time_header(csv);
  StepTraceTime result{.file = file, .rank = ""};
  std::vector<TimedRow> rows;
  std::map<std::pair<std::string, std::string>, std::size_t> line_of;
  std::size_t stages = 0;
  while (csv.next()) {
    if (columns.type.has_value() && csv.field(*columns.type) != "rank") {
      if (csv.field(*columns.type) != "stage")
        csv.fail("Type must be rank or stage, got '{}'", csv.field(*columns.type));
      ++stages;
      continue;
    }
    rows.push_back(read_timed_row(csv, columns));
    const auto [before, is_new] = line_of.try_emplace({rows.back().rank, rows.back().step}, rows.back().line);
    if (!is_new) csv.fail("step {} was already given in line {}", rows.back().step, before->second);
  }
  if (rows.empty())
    bad_input("profile", "{}: no steps{} below the line of column names", file, stages > 0 ? " of ranks" : "");
  if (stages > 0) result.notes.push_back(fmt::format("{}: {} rows of stages left out", file, stages));
  note_ranks(rows, result);
  std::vector<std::string> ranks;
  for (const TimedRow& row : rows) ranks.push_back(row.rank);
  result.rank = first_device(ranks, "steps", file, result.notes);
  std::erase_if(rows, [&](const TimedRow& row) { return row.rank != result.rank; });
  std::sort(rows.begin(), rows.end(), [](const TimedRow& a, const TimedRow& b) { return a.step < b.step; });
  result.steps = static_cast<std::uint32_t>(rows.size());
  result.phases = mean_phases(rows);
  return result;
}

}  // namespace hcclsim::study
