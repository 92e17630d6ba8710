#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/training/traced_cells.hpp"
#include "sim/faults/fault.hpp"
#include "sim/trace.hpp"

/// The timeline of traced ranks as Chrome trace JSON, in the layout of msprof's timeline file, for Perfetto,
/// chrome://tracing and MindStudio Insight. Each rank has three processes: "Ascend Hardware" with a thread per stream,
/// "Communication" with the collectives of the group and a thread per plane of their tasks, and "Overlap Analysis" with
/// Computing, Communication, Communication(Not Overlapped) and Free; and, of a step in stages or of several
/// micro-batches, what the rank computes of each of them as one coloured span. Where the host does anything, a process
/// "Host" shows it. Times are microseconds with three
/// decimals.
namespace hcclsim::cli {

/// Takes the next piece of the text.
using Sink = std::function<void(std::string_view)>;

/// What the timeline shows of one of several jobs. Its processes are named by the job and numbered by its NPUs.
struct TimelineJob {
  const hccl::Plan& plan;
  const sim::Trace& trace;
  std::vector<Rank> ranks{};
  std::string name{};            ///< empty: the only job
  std::span<const Rank> npus{};  ///< of the platform, by rank; empty: the same numbers
  std::span<const sim::Fault> faults{};
};

/// Writes the timeline of jobs that were simulated together.
void write_timeline(std::span<const TimelineJob> jobs, const Sink& sink);

/// Writes the timeline of these ranks, piece by piece, so that a large trace is never held as text. Faults are a
/// process of their own, "Faults", with a thread for each.
void write_timeline(const hccl::Plan& plan, const sim::Trace& trace, const std::vector<Rank>& ranks, const Sink& sink,
                    std::span<const sim::Fault> faults = {});

/// Writes the timeline of one rank, whose spans of the trace these are.
void write_timeline(const hccl::Plan& plan, const sim::Trace& trace, Rank rank,
                    const std::vector<const sim::Span*>& spans, const Sink& sink);

}  // namespace hcclsim::cli
