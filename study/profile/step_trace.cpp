#include "study/profile/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <utility>

#include "base/csv.hpp"
#include "study/profile/device.hpp"

namespace hcclsim::study {
namespace {

constexpr std::string_view absent = "N/A";

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
  std::size_t line = 0;
  std::string_view missing{};  ///< the first date that is absent
  StepTrace::Iteration iteration{};
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
Seconds read_duration(const CsvFile& csv, std::size_t column) {
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

std::vector<StepTrace::Reduce> read_reduces(const CsvFile& csv, const TraceColumns& columns, DeviceClock& clock) {
  std::vector<StepTrace::Reduce> reduces;
  for (std::size_t i = 0; i < columns.reduce_starts.size(); ++i) {
    const bool start_absent = csv.field(columns.reduce_starts[i]) == absent;
    const bool duration_absent = csv.field(columns.reduce_durations[i]) == absent;
    if (start_absent != duration_absent) csv.fail("only one of start and duration of reduce {} is N/A", i + 1);
    if (start_absent) continue;
    if (reduces.size() < i) csv.fail("reduce {} is N/A, but reduce {} is not", reduces.size() + 1, i + 1);
    reduces.push_back({clock.date(csv, columns.reduce_starts[i]), read_duration(csv, columns.reduce_durations[i])});
  }
  return reduces;
}

Seconds mean(const std::vector<Seconds>& values) {
  return std::accumulate(values.begin(), values.end(), Seconds{0}) / static_cast<double>(values.size());
}

Row read_row(const CsvFile& csv, const TraceColumns& columns, DeviceClock& clock) {
  Row row{.device = columns.device.has_value() ? csv.field(*columns.device) : "",
          .model = columns.model.has_value() ? csv.field(*columns.model) : "",
          .line = csv.line_number()};
  for (const std::size_t column : {columns.fp_start, columns.bp_end, columns.end}) {
    if (csv.field(column) != absent) continue;
    row.missing = csv.header()[column];
    return row;
  }
  StepTrace::Iteration& iteration = row.iteration;
  iteration = {.id = csv.field(columns.id),
               .fp_start = clock.date(csv, columns.fp_start),
               .bp_end = clock.date(csv, columns.bp_end),
               .end = clock.date(csv, columns.end),
               .reduces = read_reduces(csv, columns, clock)};
  if (iteration.bp_end <= iteration.fp_start) csv.fail("BP End(us) is not after FP Start(us)");
  if (iteration.end < iteration.bp_end) csv.fail("Iteration End(us) is before BP End(us)");
  for (const StepTrace::Reduce& reduce : iteration.reduces) {
    if (reduce.start >= iteration.fp_start && reduce.start + reduce.duration <= iteration.end + microsecond) continue;
    csv.fail("an allreduce lies outside of its iteration, FP Start(us) to Iteration End(us)");
  }
  return row;
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

/// Moves the whole iterations of the rows to the trace.
void keep_whole(std::vector<Row>& rows, StepTrace& trace) {
  std::size_t cut_off = 0;
  bool above_is_whole = false;
  for (Row& row : rows) {
    const bool follows = std::exchange(above_is_whole, row.missing.empty());
    if (!row.missing.empty()) {
      ++cut_off;
      continue;
    }
    StepTrace::Iteration& iteration = row.iteration;
    if (!trace.iterations.empty() && iteration.fp_start < trace.iterations.back().end) {
      bad_input("profile", "{}:{}: the iteration starts before the one above has ended", trace.file, row.line);
    }
    if (follows) iteration.step = iteration.end - trace.iterations.back().end;
    trace.iterations.push_back(std::move(iteration));
  }
  if (trace.iterations.empty()) {
    bad_input("profile", "{}:{}: {} is N/A; profile with fp_point and bp_point set", trace.file, rows.front().line,
              rows.front().missing);
  }
  // Of a single iteration the step is what is known of it.
  StepTrace::Iteration& first = trace.iterations.front();
  if (trace.iterations.size() == 1) first.step = first.end - first.fp_start;
  if (cut_off > 0) {
    trace.notes.push_back(fmt::format("{}: {} iteration{} left out for want of FP start, BP end or iteration end",
                                      trace.file, cut_off, cut_off == 1 ? " is" : "s are"));
  }
}

/// Names the iterations that do not count.
void note_odd(StepTrace& trace) {
  const std::vector<const StepTrace::Iteration*> counted = trace.counted();
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
  if (!step.empty()) phases.step = mean(step);
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
  while (csv.next_padded(absent)) rows.push_back(read_row(csv, columns, clock));
  if (rows.empty()) bad_input("profile", "{}: no iterations below the line of column names", file);
  trace.zero_us = clock.zero_us();
  rows = chosen(std::move(rows), trace);
  keep_whole(rows, trace);
  note_odd(trace);
  return trace;
}

}  // namespace hcclsim::study
