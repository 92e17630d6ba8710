#include "hccl/training/waits.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "hccl/training/step_view.hpp"

namespace hcclsim::hccl {
namespace {

constexpr Seconds no_date = std::numeric_limits<Seconds>::infinity();
constexpr std::uint32_t no_task = ~0U;

bool is_kernels(const PlanTask& task) { return std::holds_alternative<KernelBlock>(task.work); }

/// The tasks of a rank in one iteration, and who held up whom.
class HeldTasks {
 public:
  HeldTasks(const Plan& plan, const sim::Trace& trace, Rank rank, std::int32_t iteration, const MessageStarts& messages)
      : role_(plan.role(rank)), done_(role_.tasks.size()) {
    for (const sim::Span& span : trace.spans()) {
      if (span.rank != rank || span.id.iteration != iteration) continue;
      const bool of_host = span.kind == sim::SpanKind::host && span.stream < role_.streams.size();
      const bool of_device = span.kind == sim::SpanKind::kernel || span.kind == sim::SpanKind::collective;
      if ((!of_host && !of_device) || purpose_of(plan, span).task == nullptr) continue;
      Done& done = done_[span.id.task];
      done.start = std::min(done.start, span.start);
      done.under_way = std::min(done.under_way, messages.under_way(span));
      done.end = std::max(done.end, span.end);
    }
    std::vector<std::uint32_t> last(role_.streams.size(), no_task);
    for (std::uint32_t number = 0; number < done_.size(); ++number) {
      if (done_[number].end > -no_date) done_[number].before = std::exchange(last[role_.tasks[number].stream], number);
    }
  }

  /// Of the kernels of a stream.
  [[nodiscard]] std::vector<Wait> of_stream(std::uint32_t stream) const {
    std::vector<Wait> waits;
    Seconds kernel_before = -no_date;
    for (std::uint32_t number = 0; number < done_.size(); ++number) {
      const PlanTask& task = role_.tasks[number];
      if (task.stream != stream || !is_kernels(task) || done_[number].end == -no_date) continue;
      add(holder_of(number), done_[number].start, kernel_before, waits);
      kernel_before = done_[number].end;
    }
    return waits;
  }

  /// Of the end of the step.
  [[nodiscard]] std::vector<Wait> of_end() const {
    std::vector<Wait> waits;
    Seconds last_kernel = -no_date;
    for (std::uint32_t number = 0; number < done_.size(); ++number) {
      if (is_kernels(role_.tasks[number])) last_kernel = std::max(last_kernel, done_[number].end);
    }
    const auto last = std::ranges::max_element(done_, {}, &Done::end);
    if (last != done_.end()) add(static_cast<std::uint32_t>(last - done_.begin()), no_date, last_kernel, waits);
    return waits;
  }

 private:
  struct Done {
    Seconds start = no_date;
    Seconds under_way = no_date;
    Seconds end = -no_date;          ///< still: the iteration does not carry it out
    std::uint32_t before = no_task;  ///< in its stream
  };

  /// Of the tasks that this one waits for, the one that ended last.
  [[nodiscard]] std::uint32_t holder_of(std::uint32_t number) const {
    std::uint32_t holder = done_[number].before;
    for (const std::uint32_t before : role_.tasks[number].after) {
      if (done_[before].end == -no_date) continue;
      if (holder == no_task || done_[before].end > done_[holder].end) holder = before;
    }
    return holder;
  }

  /// What holds up between two dates, of the tasks that hold up each other up to `holder`.
  void add(std::uint32_t holder, Seconds to, Seconds from, std::vector<Wait>& waits) const {
    for (; holder != no_task && std::min(to, done_[holder].end) > from; holder = holder_of(holder)) {
      const Done& done = done_[holder];
      const sim::Interval time{std::max(from, done.under_way), std::min(to, done.end)};
      if (!is_kernels(role_.tasks[holder]) && time.length() > 0) waits.push_back({&role_.tasks[holder], time});
      to = std::min(to, done.start);
    }
  }

  const Role& role_;
  std::vector<Done> done_;
};

}  // namespace

std::vector<std::vector<Wait>> waits_of(const Plan& plan, const sim::Trace& trace, Rank rank, std::int32_t iteration,
                                        const MessageStarts& messages) {
  const HeldTasks tasks(plan, trace, rank, iteration, messages);
  std::vector<std::vector<Wait>> waits;
  for (std::uint32_t stream = 0; stream < plan.role(rank).streams.size(); ++stream) {
    waits.push_back(tasks.of_stream(stream));
  }
  waits.push_back(tasks.of_end());
  return waits;
}

}  // namespace hcclsim::hccl
