#include "study/files/profile/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <utility>

#include "base/csv.hpp"
#include "base/text.hpp"
#include "study/files/profile/device.hpp"

namespace hcclsim::study {
namespace {

constexpr std::string_view absent = "N/A";

/// Of an allreduce. Fields in the end of a row that are not there read as empty.
bool is_absent(const std::string& field) { return field.empty() || field == absent; }

struct TraceColumns {
  std::size_t id;
  std::size_t fp_start;
  std::size_t bp_end;
  std::size_t end;
  std::optional<std::size_t> device;
  std::optional<std::size_t> model;
  std::vector<std::size_t> reduce_starts;
  std::vector<std::size_t> reduce_durations;
};

/// A row, whole or not.
struct Row {
  std::string device;
  std::string model;
  std::string id;
  std::size_t line = 0;
  std::string_view missing{};  ///< the first date that is absent
  DeviceDate fp_start{};
  DeviceDate bp_end{};
  DeviceDate end{};
  struct Reduce {
    DeviceDate start;
    Seconds duration = 0;
  };
  std::vector<Reduce> reduces{};
};

TraceColumns read_header(const CsvFile& csv) {
  TraceColumns columns{.id = csv.column("Iteration ID"),
                       .fp_start = csv.column("FP Start(us)"),
                       .bp_end = csv.column("BP End(us)"),
                       .end = csv.column("Iteration End(us)"),
                       .device = csv.find_any({"Device_id", "Device ID"}),
                       .model = csv.find("Model ID"),
                       .reduce_starts = csv.all("Reduce Start(us)"),
                       .reduce_durations = csv.all("Reduce Duration(us)")};
  if (columns.reduce_starts.size() != columns.reduce_durations.size()) {
    csv.fail("{} columns Reduce Start(us), but {} columns Reduce Duration(us)", columns.reduce_starts.size(),
             columns.reduce_durations.size());
  }
  return columns;
}

/// Some versions of msprof write the first duration of a row as 2^64 ns less it.
Seconds read_reduce_duration(const CsvFile& csv, std::size_t column) {
  constexpr std::uint64_t wrap_us = 18446744073709551;  // and 616 ns
  constexpr double wrap_rest_us = 0.616;
  constexpr double longest_us = 1e12;
  const double us = csv.positive_or_zero(column);
  const std::string& text = csv.field(column);
  std::uint64_t whole_us = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, whole_us);
  if (us < longest_us || error != std::errc() || whole_us > wrap_us) return us * microsecond;
  double fraction_us = 0;
  if (rest != end) std::from_chars(rest, end, fraction_us);
  return (static_cast<double>(wrap_us - whole_us) + wrap_rest_us - fraction_us) * microsecond;
}

std::vector<Row::Reduce> read_reduces(const CsvFile& csv, const TraceColumns& columns, DeviceClock& clock) {
  std::vector<Row::Reduce> reduces;
  for (std::size_t i = 0; i < columns.reduce_starts.size(); ++i) {
    const bool start_absent = is_absent(csv.field(columns.reduce_starts[i]));
    const bool duration_absent = is_absent(csv.field(columns.reduce_durations[i]));
    if (start_absent != duration_absent) csv.fail("only one of start and duration of reduce {} is N/A", i + 1);
    if (start_absent) continue;
    if (reduces.size() < i) csv.fail("reduce {} is N/A, but reduce {} is not", reduces.size() + 1, i + 1);
    reduces.push_back(
        {clock.read(csv, columns.reduce_starts[i]), read_reduce_duration(csv, columns.reduce_durations[i])});
  }
  return reduces;
}

Seconds mean(const std::vector<Seconds>& values) {
  return std::accumulate(values.begin(), values.end(), Seconds{0}) / static_cast<double>(values.size());
}

Row read_row(const CsvFile& csv, const TraceColumns& columns, DeviceClock& clock) {
  Row row{.device = columns.device.has_value() ? csv.field(*columns.device) : "",
          .model = columns.model.has_value() ? csv.field(*columns.model) : "",
          .id = csv.field(columns.id),
          .line = csv.line_number()};
  for (const auto& column : {columns.device, columns.model}) {
    if (!column.has_value() || !csv.field(*column).empty()) continue;
    csv.fail("{} is empty: is the row cut off?", csv.header()[*column]);
  }
  for (const std::size_t column : {columns.fp_start, columns.bp_end, columns.end}) {
    if (csv.field(column) != absent) continue;
    row.missing = csv.header()[column];
    return row;
  }
  row.fp_start = clock.read(csv, columns.fp_start);
  row.bp_end = clock.read(csv, columns.bp_end);
  row.end = clock.read(csv, columns.end);
  row.reduces = read_reduces(csv, columns, clock);
  if (!(row.fp_start < row.bp_end)) csv.fail("BP End(us) is not after FP Start(us)");
  if (row.end < row.bp_end) csv.fail("Iteration End(us) is before BP End(us)");
  return row;
}

StepTrace::Iteration iteration_of(const Row& row, const DeviceClock& clock, const std::string& file) {
  StepTrace::Iteration iteration{.id = row.id,
                                 .fp_start = clock.since_zero(row.fp_start),
                                 .bp_end = clock.since_zero(row.bp_end),
                                 .end = clock.since_zero(row.end)};
  for (const Row::Reduce& measured : row.reduces) {
    const StepTrace::Reduce reduce{clock.since_zero(measured.start), measured.duration};
    if (reduce.start < iteration.fp_start || reduce.start + reduce.duration > iteration.end + microsecond) {
      bad_input("profile", "{}:{}: an allreduce lies outside of its iteration, FP Start(us) to Iteration End(us)", file,
                row.line);
    }
    iteration.reduces.push_back(reduce);
  }
  return iteration;
}

/// The rows of one device and of the model with most whole iterations, the first of equals.
std::vector<Row> chosen(std::vector<Row> rows, StepTrace& trace) {
  std::vector<std::string> devices;
  for (const Row& row : rows) devices.push_back(row.device);
  trace.device = first_device(devices, "iterations", trace.file, trace.notes);
  std::erase_if(rows, [&](const Row& row) { return row.device != trace.device; });
  std::map<std::string, std::size_t> count;
  for (const Row& row : rows) count[row.model] += row.missing.empty() ? 1 : 0;
  const auto most =
      std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (count.size() > 1) {
    trace.notes.push_back(fmt::format("{}: iterations of Model ID {}; those of {} more are left out", trace.file,
                                      most->first, count.size() - 1));
  }
  std::erase_if(rows, [&, model = most->first](const Row& row) { return row.model != model; });
  return rows;
}

/// The number of allreduces that most of them have, the larger of equals.
std::size_t usual_reduces(const std::vector<const StepTrace::Iteration*>& iterations) {
  std::map<std::size_t, std::size_t> count;
  for (const StepTrace::Iteration* const iteration : iterations) ++count[iteration->reduces.size()];
  const auto usual =
      std::max_element(count.rbegin(), count.rend(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return usual->first;
}

/// Whether `next` comes right behind `above`: their ids are whole numbers that follow each other.
bool follows(const Row& next, const Row& above) {
  const auto id = parse_number<std::uint64_t>(next.id);
  const auto before = parse_number<std::uint64_t>(above.id);
  return id.has_value() && before.has_value() && *id == *before + 1;
}

/// Puts the whole iterations of the rows into the trace, in the order of their dates.
void keep_whole(std::vector<Row> rows, const DeviceClock& clock, StepTrace& trace) {
  const Row first = rows.front();
  const std::size_t cut_off = std::erase_if(rows, [](const Row& row) { return !row.missing.empty(); });
  if (rows.empty()) {
    bad_input("profile", "{}:{}: {} is N/A; profile with fp_point and bp_point set", trace.file, first.line,
              first.missing);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.fp_start < b.fp_start; });
  for (const Row& row : rows) {
    StepTrace::Iteration iteration = iteration_of(row, clock, trace.file);
    if (!trace.iterations.empty()) {
      const Row& above = *(&row - 1);
      if (iteration.fp_start < trace.iterations.back().end) {
        bad_input("profile",
                  "{}:{}: iteration {} starts before iteration {} (line {}) has ended; give the rows of one device and "
                  "one run",
                  trace.file, row.line, row.id, above.id, above.line);
      }
      if (follows(row, above)) iteration.step = iteration.end - trace.iterations.back().end;
    }
    trace.iterations.push_back(std::move(iteration));
  }
  // Of a single iteration the step is what is known of it.
  StepTrace::Iteration& only = trace.iterations.front();
  if (trace.iterations.size() == 1) only.step = only.end - only.fp_start;
  if (cut_off > 0) {
    trace.notes.push_back(fmt::format("{}: {} iteration{} left out for want of FP start, BP end or iteration end",
                                      trace.file, cut_off, cut_off == 1 ? " is" : "s are"));
  }
}

/// Names the iterations that do not count.
void note_odd(StepTrace& trace) {
  const std::vector<const StepTrace::Iteration*> counted = trace.counted();
  std::vector<Seconds> steps;
  for (const StepTrace::Iteration* const iteration : counted) {
    if (iteration->step.has_value()) steps.push_back(*iteration->step);
  }
  if (const std::size_t usual = usual_steps(steps).size(); usual < steps.size()) {
    trace.notes.push_back(
        fmt::format("{}: {} of {} steps left out of the mean: more than ten times as long as most; are "
                    "there several runs in it?",
                    trace.file, steps.size() - usual, steps.size()));
  }
  for (std::size_t i = 1; i < trace.iterations.size(); ++i) {
    const StepTrace::Iteration& iteration = trace.iterations[i];
    if (std::find(counted.begin(), counted.end(), &iteration) != counted.end()) continue;
    trace.notes.push_back(fmt::format("{}: iteration {} has {} allreduces instead of {} and is left out", trace.file,
                                      iteration.id, iteration.reduces.size(), counted.front()->reduces.size()));
  }
}

}  // namespace

std::vector<const StepTrace::Iteration*> StepTrace::counted() const {
  std::vector<const Iteration*> result;
  for (std::size_t i = iterations.size() > 1 ? 1 : 0; i < iterations.size(); ++i) result.push_back(&iterations[i]);
  const std::size_t usual = usual_reduces(result);
  std::erase_if(result, [usual](const Iteration* iteration) { return iteration->reduces.size() != usual; });
  return result;
}

Phases StepTrace::phases() const {
  std::vector<Seconds> compute;
  std::vector<Seconds> tail;
  std::vector<Seconds> last_update;
  std::vector<Seconds> step;
  bool overlapped = false;
  std::vector<std::vector<Seconds>> reduces(counted().front()->reduces.size());
  for (const Iteration* const iteration : counted()) {
    compute.push_back(iteration->bp_end - iteration->fp_start);
    tail.push_back(iteration->end - iteration->bp_end);
    if (iteration->step.has_value()) step.push_back(*iteration->step);
    Seconds communicated = iteration->bp_end;
    for (std::size_t k = 0; k < reduces.size(); ++k) {
      const Reduce& reduce = iteration->reduces[k];
      reduces[k].push_back(reduce.duration);
      overlapped = overlapped || reduce.start < iteration->bp_end;
      communicated = std::max(communicated, reduce.start + reduce.duration);
    }
    last_update.push_back(iteration->end - communicated);
  }
  Phases phases{.forward_backward = mean(compute), .last_update = mean(last_update), .tail = mean(tail)};
  if (!step.empty()) phases.step = mean(usual_steps(step));
  if (!reduces.empty()) phases.overlapped = overlapped;
  for (const std::vector<Seconds>& reduce : reduces) phases.allreduces.push_back(mean(reduce));
  return phases;
}

StepTrace parse_step_trace(std::string_view text, const std::string& file) {
  CsvFile csv(text, file, "profile");
  const TraceColumns columns = read_header(csv);
  StepTrace trace{.file = file, .device = "", .iterations = {}};
  std::vector<Row> rows;
  DeviceClock clock;
  while (csv.next_padded("")) rows.push_back(read_row(csv, columns, clock));
  if (rows.empty()) bad_input("profile", "{}: no iterations below the line of column names", file);
  trace.zero_us = clock.zero_us();
  clock.note_rounded(file, trace.notes);
  keep_whole(chosen(std::move(rows), trace), clock, trace);
  note_odd(trace);
  return trace;
}

}  // namespace hcclsim::study
