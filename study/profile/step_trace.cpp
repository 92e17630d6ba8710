#include "study/profile/step_trace.hpp"

#include <algorithm>

#include "base/csv.hpp"
#include "study/profile/device_date.hpp"

namespace hcclsim::study {
namespace {

constexpr std::string_view absent = "N/A";

struct Columns {
  std::size_t fp_start;
  std::size_t bp_end;
  std::size_t end;
  std::vector<std::size_t> reduce_starts;
  std::vector<std::size_t> reduce_durations;
};

Columns read_header(const CsvFile& csv) {
  static_cast<void>(csv.column("Iteration ID"));
  Columns columns{.fp_start = csv.column("FP Start(us)"),
                  .bp_end = csv.column("BP End(us)"),
                  .end = csv.column("Iteration End(us)"),
                  .reduce_starts = csv.all("Reduce Start(us)"),
                  .reduce_durations = csv.all("Reduce Duration(us)")};
  if (columns.reduce_starts.size() != columns.reduce_durations.size()) {
    csv.fail("{} columns Reduce Start(us), but {} columns Reduce Duration(us)", columns.reduce_starts.size(),
             columns.reduce_durations.size());
  }
  return columns;
}

std::vector<StepTrace::Reduce> read_reduces(const CsvFile& csv, const Columns& columns, DeviceClock& clock) {
  std::vector<StepTrace::Reduce> reduces;
  for (std::size_t i = 0; i < columns.reduce_starts.size(); ++i) {
    const bool start_absent = csv.field(columns.reduce_starts[i]) == absent;
    const bool duration_absent = csv.field(columns.reduce_durations[i]) == absent;
    if (start_absent != duration_absent) csv.fail("only one of start and duration of reduce {} is N/A", i + 1);
    if (start_absent) continue;
    if (reduces.size() < i) csv.fail("reduce {} is N/A, but reduce {} is not", reduces.size() + 1, i + 1);
    reduces.push_back(
        {clock.date(csv, columns.reduce_starts[i]), csv.positive_or_zero(columns.reduce_durations[i]) * microsecond});
  }
  return reduces;
}

Seconds mean(const std::vector<Seconds>& values) {
  Seconds sum = 0;
  for (const Seconds value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

Phases StepTrace::phases() const {
  const std::size_t first = iterations.size() > 1 ? 1 : 0;
  std::vector<Seconds> compute;
  std::vector<Seconds> tail;
  std::vector<Seconds> last_update;
  std::vector<Seconds> step;
  bool overlapped = false;
  std::vector<std::vector<Seconds>> reduces(iterations.back().reduces.size());
  for (std::size_t i = first; i < iterations.size(); ++i) {
    const Iteration& iteration = iterations[i];
    compute.push_back(iteration.bp_end - iteration.fp_start);
    tail.push_back(iteration.end - iteration.bp_end);
    step.push_back(iteration.end - (i == 0 ? iteration.fp_start : iterations[i - 1].end));
    Seconds communicated = iteration.bp_end;
    for (const Reduce& reduce : iteration.reduces) {
      overlapped = overlapped || reduce.start < iteration.bp_end;
      communicated = std::max(communicated, reduce.start + reduce.duration);
    }
    last_update.push_back(iteration.end - communicated);
    if (iteration.reduces.size() != reduces.size()) continue;
    for (std::size_t k = 0; k < reduces.size(); ++k) reduces[k].push_back(iteration.reduces[k].duration);
  }
  Phases phases{
      .forward_backward = mean(compute), .last_update = mean(last_update), .tail = mean(tail), .step = mean(step)};
  if (!reduces.empty()) phases.overlapped = overlapped;
  for (const std::vector<Seconds>& reduce : reduces) phases.allreduces.push_back(mean(reduce));
  return phases;
}

StepTrace parse_step_trace(std::string_view text, const std::string& file) {
  CsvFile csv(text, file, "profile");
  const Columns columns = read_header(csv);
  StepTrace trace{.file = file, .iterations = {}};
  DeviceClock clock;
  while (csv.next()) {
    for (const std::size_t column : {columns.fp_start, columns.bp_end}) {
      if (csv.field(column) != absent) continue;
      csv.fail("{} is N/A; profile with fp_point and bp_point set", csv.header()[column]);
    }
    StepTrace::Iteration iteration{.fp_start = clock.date(csv, columns.fp_start),
                                   .bp_end = clock.date(csv, columns.bp_end),
                                   .end = clock.date(csv, columns.end),
                                   .reduces = read_reduces(csv, columns, clock)};
    if (iteration.bp_end < iteration.fp_start) csv.fail("BP End(us) is before FP Start(us)");
    if (iteration.end < iteration.bp_end) csv.fail("Iteration End(us) is before BP End(us)");
    if (!trace.iterations.empty() && iteration.fp_start < trace.iterations.back().end) {
      csv.fail("the iteration starts before the one above has ended");
    }
    for (const StepTrace::Reduce& reduce : iteration.reduces) {
      if (reduce.start >= iteration.fp_start && reduce.start + reduce.duration <= iteration.end + microsecond) continue;
      csv.fail("an allreduce lies outside of its iteration, FP Start(us) to Iteration End(us)");
    }
    trace.iterations.push_back(std::move(iteration));
  }
  if (trace.iterations.empty()) bad_input("profile", "{}: no iterations below the line of column names", file);
  return trace;
}

}  // namespace hcclsim::study
