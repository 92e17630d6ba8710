#include <algorithm>
#include <vector>

#include "cli/profiler/profiled_rank.hpp"
#include "hccl/training/step_view.hpp"

namespace hcclsim::cli {
namespace {

/// The part of a union that lies in a time.
std::vector<sim::Interval> within(const std::vector<sim::Interval>& united, sim::Interval time) {
  std::vector<sim::Interval> inside;
  auto at = std::ranges::lower_bound(united, time.start, {}, &sim::Interval::end);
  for (; at != united.end() && at->start < time.end; ++at) {
    const sim::Interval part{std::max(at->start, time.start), std::min(at->end, time.end)};
    if (part.end > part.start) inside.push_back(part);
  }
  return inside;
}

/// When the device of a rank does what.
struct Busy {
  std::vector<sim::Interval> computing;
  std::vector<sim::Interval> communicating;
  std::vector<sim::Interval> without_receives;
  std::vector<sim::Interval> receiving;  ///< one by one
};

Busy busy_of(const ProfiledRank& rank) {
  Busy busy;
  for (const ProfiledOp& op : rank.ops()) {
    const sim::Interval time{op.span->start, op.span->end};
    if (!op.communicates()) {
      busy.computing.push_back(time);
      continue;
    }
    busy.communicating.push_back(time);
    (op.receives() ? busy.receiving : busy.without_receives).push_back(time);
  }
  busy.computing = sim::unite(std::move(busy.computing));
  busy.communicating = sim::unite(std::move(busy.communicating));
  busy.without_receives = sim::unite(std::move(busy.without_receives));
  return busy;
}

/// Of those that begin in the step.
Seconds bubble_of(const Busy& busy, sim::Interval time) {
  Seconds sum = 0;
  for (const sim::Interval& receive : busy.receiving) {
    sum += std::max(0.0, std::min(receive.end, time.end) - std::max(receive.start, time.start));
  }
  return sum;
}

}  // namespace

void write_step_trace_time(const ProfiledRank& rank, const Sink& sink) {
  Rows rows(sink);
  rows.add(
      "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
      "Communication(Not Overlapped and Exclude Receive),Preparing");
  const Busy busy = busy_of(rank);
  for (const ProfiledStepWindow& window : rank.windows()) {
    const std::vector<sim::Interval> computing = within(busy.computing, window.time);
    const std::vector<sim::Interval> communicating = within(busy.communicating, window.time);
    const std::vector<sim::Interval> without_receives = within(busy.without_receives, window.time);
    const Seconds exposed = length(subtract(communicating, computing));
    Seconds begin = window.time.end;
    Seconds end = window.time.start;
    for (const std::vector<sim::Interval>* work : {&computing, &communicating}) {
      if (work->empty()) continue;
      begin = std::min(begin, work->front().start);
      end = std::max(end, work->back().end);
    }
    const Seconds bubble = bubble_of(busy, window.time);
    rows.add("{},{},{},{},{},{},{},{},{},{}", window.number, profiled_duration(length(computing)),
             profiled_duration(exposed), profiled_duration(length(communicating) - exposed),
             profiled_duration(length(communicating)),
             profiled_duration(window.time.length() - length(computing) - exposed),
             profiled_duration(std::max(0.0, end - begin) - bubble), profiled_duration(bubble),
             profiled_duration(length(subtract(without_receives, computing))),
             profiled_duration(std::max(0.0, begin - window.time.start)));
  }
}

}  // namespace hcclsim::cli
