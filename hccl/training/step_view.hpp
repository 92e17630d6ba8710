#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/training/memory_points.hpp"
#include "sim/intervals.hpp"
#include "sim/trace.hpp"

/// What one rank's spans say of a Plan: the one place where figures are made of a trace. A span names its task, and the
/// Plan says what the task is there for.
namespace hcclsim::hccl {

/// What a span of a Plan's trace shows.
struct SpanPurpose {
  const PlanTask* task = nullptr;
  StepPhase phase = StepPhase::forward;
  std::uint32_t segment = Purpose::none;  ///< of gradients, of a reduction
  StreamKind stream = StreamKind::compute;
};
/// Null task: the span is of no task of the Plan.
[[nodiscard]] SpanPurpose purpose_of(const Plan& plan, const sim::Span& span);

/// The trace points of one iteration in the words of msprof and of the vendor's split guide; dates of the trace.
struct IterationPoints {
  Seconds fp_start = 0;
  Seconds fp_end = 0;                     ///< the last forward kernel ends; fp_start if there is none
  Seconds bp_start = 0;                   ///< the first kernel of the backward pass starts; bp_end if there is none
  Seconds bp_end = 0;                     ///< the last kernel of forward and backward ends
  std::vector<sim::Interval> allreduces;  ///< in the order of segments
  std::optional<sim::Interval> overflow_flag{};  ///< of dynamic loss scaling
  Seconds iteration_end = 0;  ///< kernels and communication have ended, and the checkpoint behind them if there is one
  std::optional<sim::Interval> input{};       ///< from the first to the last work on its batch on the host
  std::optional<sim::Interval> checkpoint{};  ///< written behind it
  /// From the end of the iteration before it to fp_start; none of the first one.
  std::optional<Seconds> data_aug_bound{};
  Seconds data_wait = 0;  ///< the part of it during which the batch was not there; of the first one since it began

  /// Kernels and communication have ended.
  [[nodiscard]] Seconds device_end() const { return checkpoint.has_value() ? checkpoint->start : iteration_end; }
};

struct SegmentFigures {
  Segment segment;
  std::uint32_t collective = 0;  ///< index into Plan::collectives
  Bytes bytes = 0;               ///< on the wire, before the algorithm multiplies them
  double share = 0;              ///< fraction of all bytes
  std::string algorithm;
  // Seconds since fp_start of the last iteration.
  Seconds ready = 0;  ///< last gradient is there
  Seconds start = 0;
  Seconds end = 0;
  double hidden = 0;  ///< fraction of the time during which forward or backward is computed
  double algbw = 0;   ///< bytes / time, bytes per second
  double busbw = 0;   ///< algbw · 2(n−1)/n
};

/// What dynamic loss scaling and clipping do between the reduction of the gradients and their update.
struct GradientCheckTimes {
  Seconds start = 0;        ///< of the first check
  Seconds end = 0;          ///< nothing keeps the updates any longer
  Seconds kernels_end = 0;  ///< of the last check, or of the kernel that makes the clip's factor
  std::string algorithm;    ///< of the allreduce of the overflow flag; empty: there is no flag
  sim::Interval flag{};
};

struct PhaseTimes {
  /// From the first kernel of a pass to its last one, summed over micro-batches and chunks, whose passes take turns.
  Seconds forward = 0;
  Seconds backward = 0;  ///< the same
  Seconds update = 0;    ///< of checks and of the optimizer's kernels after bp_end or beside it
};

class MessageStarts;

/// Figures of one rank. Dates but those of `iterations` are seconds since fp_start of the last iteration.
struct StepView {
  /// The rank must be in the trace. A step needs a kernel of forward or backward.
  [[nodiscard]] static StepView of(const Plan& plan, const sim::Trace& trace, Rank rank);
  /// With the starts of messages in this trace, for views of many ranks.
  [[nodiscard]] static StepView of(const Plan& plan, const sim::Trace& trace, Rank rank, const MessageStarts& messages);

  std::vector<IterationPoints> iterations;
  Seconds fp_start = 0;  ///< of the last iteration, in the trace's clock
  Seconds fp_end = 0;    ///< 0 if there is no forward kernel
  Seconds bp_start = 0;
  Seconds bp_end = 0;
  Seconds iteration_end = 0;
  PhaseTimes phases;
  Seconds computing = 0;      ///< time during which a compute or update stream is busy
  Seconds communicating = 0;  ///< time during which a collective or a message is under way (message_starts.hpp)
  /// The part of it during which nothing is computed, updates included: as profilers count it.
  Seconds not_overlapped = 0;
  /// The part of it beside which neither forward nor backward is computed. Updates hide nothing: those of a segment
  /// come earlier where its reduction ends earlier, so that a faster link would seem to expose the segment behind it.
  Seconds exposed = 0;
  std::vector<SegmentFigures> segments;
  std::optional<GradientCheckTimes> checks;
  std::vector<Seconds> gradient_ready;  ///< production order
  /// Whenever it changes with the start of a kernel or of communication; empty if the Plan knows of no tensors. The
  /// last one is none, at bp_end.
  std::vector<MemoryPoint> activations;

  /// As iteration_end, without the checkpoint.
  [[nodiscard]] Seconds device_end() const {
    const bool written = !iterations.empty() && iterations.back().checkpoint.has_value();
    return written ? iterations.back().device_end() - fp_start : iteration_end;
  }
  /// Time of the iteration during which neither anything is computed nor communication is under way.
  [[nodiscard]] Seconds free() const { return std::max(0.0, iteration_end - (computing + not_overlapped)); }

 private:
  void add_points(const Plan& plan, const sim::Trace& trace, Rank rank);
  /// What the host does for an iteration besides issuing it.
  void add_host_work(const Plan& plan, const sim::Trace& trace, Rank rank);
  void add_data_waits();
  void add_last_iteration(const Plan& plan, const sim::Trace& trace, Rank rank, const MessageStarts& messages);
  /// `step`: when forward and backward are computed.
  void add_segments(const Plan& plan, Rank rank, const std::vector<sim::Interval>& step);
};

}  // namespace hcclsim::hccl
