#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "cli/draw/profiler_names.hpp"
#include "cli/draw/rows.hpp"
#include "cli/draw/timeline.hpp"
#include "device/hbm.hpp"
#include "device/soc.hpp"
#include "hccl/training/message_starts.hpp"
#include "sim/intervals.hpp"
#include "study/run/result.hpp"

/// One rank of a simulated step as a profiler would have seen it: what the files of its profile are written from. The
/// first iteration, which starts from rest, is left out if there are others, as a profiler's schedule leaves out those
/// that warm up.
namespace hcclsim::cli {

/// A kernel, or communication as its stream sees it.
struct ProfiledOp {
  const sim::Span* span = nullptr;
  Seconds reached = 0;  ///< its stream comes to it
  std::string name;     ///< of communication HCCL's operator
  std::string type;     ///< "Conv2D", "hcom_allReduce_", …
  std::string_view core;

  [[nodiscard]] bool communicates() const { return span->kind == sim::SpanKind::collective; }
  [[nodiscard]] bool receives() const { return type == "hcom_receive_"; }
  [[nodiscard]] bool is_message() const { return receives() || type == "hcom_send_"; }
};

struct ProfiledStepWindow {
  std::uint32_t number = 0;  ///< from 1 on
  sim::Interval time{};      ///< from the end of the iteration before to its own
};

class ProfiledRank {
 public:
  /// The rank must be in the trace, whose spans of it `spans` are. Step and groups must outlive it.
  ProfiledRank(const hccl::TimedStep& step, const ProfiledGroups& groups, const hccl::MessageStarts& messages,
               Rank rank, std::span<const sim::Span* const> spans);

  [[nodiscard]] Rank rank() const { return rank_; }
  [[nodiscard]] const hccl::TimedStep& step() const { return step_; }
  [[nodiscard]] const hccl::Role& role() const { return step_.plan.role(rank_); }
  [[nodiscard]] const ProfiledGroups& groups() const { return groups_; }
  /// Those that are shown. A receive begins when its send has, whose input is there then; its stream may have come to
  /// it long before.
  [[nodiscard]] const std::vector<const sim::Span*>& spans() const { return spans_; }
  [[nodiscard]] const std::vector<ProfiledStepWindow>& windows() const { return windows_; }
  /// Kernels and communication, by their starts.
  [[nodiscard]] const std::vector<ProfiledOp>& ops() const { return ops_; }

 private:
  /// The spans with receives, and what is inside them, as they are shown.
  [[nodiscard]] std::vector<const sim::Span*> with_late_receives(std::span<const sim::Span* const> spans,
                                                                 const hccl::MessageStarts& messages);

  const hccl::TimedStep& step_;
  const ProfiledGroups& groups_;
  Rank rank_;
  std::deque<sim::Span> late_;
  std::vector<const sim::Span*> spans_;
  std::vector<ProfiledStepWindow> windows_;
  std::vector<ProfiledOp> ops_;
};

/// Microseconds with three decimals, which make whole nanoseconds.
[[nodiscard]] std::string profiled_date(Seconds date);
/// Microseconds with six decimals: sums of many are exact to a nanosecond.
[[nodiscard]] std::string profiled_duration(Seconds duration);

/// step_trace_time.csv in MindSpore's columns, in microseconds. Bubble is the time during which the rank computes
/// nothing and a receive of the iteration, to which its stream has come, has not ended; Stage the iteration's time from
/// its first to its last work without it, Preparing the time before the first. Free is all time of the step during
/// which neither anything is computed nor communication is under way.
void write_step_trace_time(const ProfiledRank& rank, const Sink& sink);
/// kernel_details.csv: kernels and communication.
void write_kernel_details(const ProfiledRank& rank, const Sink& sink);
/// op_statistic.csv: sums over types of kernels.
void write_op_statistic(const ProfiledRank& rank, const Sink& sink);
/// communication.json: what the tasks inside each operator did. The times of an operator are those of the plane whose
/// tasks are busiest; its bytes those of all planes.
void write_communication(const ProfiledRank& rank, const Sink& sink);
/// communication_matrix.json: who sent how much to whom. Bandwidth(Utilization) is of what msprof takes for the link's
/// bandwidth; 0 where it has none.
void write_communication_matrix(const ProfiledRank& rank, device::Generation generation, const Sink& sink);
/// memory_record.csv: what is there for the whole step, which is all of the account but activations, and the tensors
/// that are alive.
void write_memory_record(const ProfiledRank& rank, const device::HbmAccount& hbm, const Sink& sink);

}  // namespace hcclsim::cli
