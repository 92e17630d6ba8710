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
    if (!op.receives()) busy.without_receives.push_back(time);
  }
  busy.computing = sim::unite(std::move(busy.computing));
  busy.communicating = sim::unite(std::move(busy.communicating));
  busy.without_receives = sim::unite(std::move(busy.without_receives));
  return busy;
}

/// What an iteration does, whenever that is: a stage may begin it before others have ended the one before.
struct OwnWork {
  Seconds begin = 0;
  Seconds end = 0;
  std::vector<sim::Interval> receives;  ///< from when their streams come to them
};

OwnWork own_work(const ProfiledRank& rank, std::uint32_t step) {
  OwnWork work;
  bool any = false;
  for (const ProfiledOp& op : rank.ops()) {
    if (op.span->id.iteration + 1 != static_cast<std::int32_t>(step)) continue;
    work.begin = any ? std::min(work.begin, op.reached) : op.reached;
    work.end = std::max(work.end, op.span->end);
    if (op.receives()) work.receives.push_back({op.reached, op.span->end});
    any = true;
  }
  work.receives = sim::unite(std::move(work.receives));
  return work;
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
    const OwnWork own = own_work(rank, window.number);
    const Seconds bubble = length(subtract(own.receives, busy.computing));
    rows.add("{},{},{},{},{},{},{},{},{},{}", window.number, profiled_duration(length(computing)),
             profiled_duration(exposed), profiled_duration(length(communicating) - exposed),
             profiled_duration(length(communicating)),
             profiled_duration(window.time.length() - length(computing) - exposed),
             profiled_duration(std::max(0.0, own.end - own.begin - bubble)), profiled_duration(bubble),
             profiled_duration(length(subtract(without_receives, computing))),
             profiled_duration(std::max(0.0, own.begin - window.time.start)));
  }
  rows.hand_on();
}

}  // namespace hcclsim::cli
