#include "hccl/training/step_view.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "hccl/training/message_starts.hpp"

namespace hcclsim::hccl {
namespace {

bool is_step_kernel(StepPhase phase) { return phase == StepPhase::forward || phase == StepPhase::backward; }

/// Calls visit(span, purpose) for the kernels and the communication of a rank.
template <typename Visit>
void visit_spans(const Plan& plan, const sim::Trace& trace, Rank rank, const Visit& visit) {
  for (const sim::Span& span : trace.spans()) {
    if (span.rank != rank || (span.kind != sim::SpanKind::kernel && span.kind != sim::SpanKind::collective)) continue;
    const SpanPurpose purpose = purpose_of(plan, span);
    if (purpose.task != nullptr) visit(span, purpose);
  }
}

/// Adds an interval of which the union is made later: one that begins in the last one, as a kernel with the end of the
/// kernel before it, makes that longer.
void add(std::vector<sim::Interval>& intervals, const sim::Interval& interval) {
  const bool touches =
      !intervals.empty() && interval.start >= intervals.back().start && interval.start <= intervals.back().end;
  if (touches) {
    intervals.back().end = std::max(intervals.back().end, interval.end);
  } else {
    intervals.push_back(interval);
  }
}

}  // namespace

SpanPurpose purpose_of(const Plan& plan, const sim::Span& span) {
  if (span.rank >= plan.ranks()) return {};
  const Role& role = plan.role(span.rank);
  if (span.id.task >= role.tasks.size()) return {};
  const PlanTask& task = role.tasks[span.id.task];
  return {&task, task.purpose.phase, task.purpose.segment, role.streams[task.stream]};
}

StepView StepView::of(const Plan& plan, const sim::Trace& trace, Rank rank) {
  return of(plan, trace, rank, MessageStarts(plan, trace));
}

StepView StepView::of(const Plan& plan, const sim::Trace& trace, Rank rank, const MessageStarts& messages) {
  StepView view;
  view.add_points(plan, trace, rank);
  if (view.iterations.empty()) internal_error("rank {} is not in the trace", rank);
  view.add_host_work(plan, trace, rank);
  const IterationPoints& last = view.iterations.back();
  view.fp_start = last.fp_start;
  view.fp_end = last.fp_end - view.fp_start;
  view.bp_start = last.bp_start - view.fp_start;
  view.bp_end = last.bp_end - view.fp_start;
  view.iteration_end = last.iteration_end - view.fp_start;
  view.add_data_waits();
  view.add_last_iteration(plan, trace, rank, messages);
  return view;
}

void StepView::add_host_work(const Plan& plan, const sim::Trace& trace, Rank rank) {
  const auto add = [](std::optional<sim::Interval>& all, const sim::Span& span) {
    const sim::Interval own{span.start, span.end};
    all = all.has_value() ? sim::Interval{std::min(all->start, own.start), std::max(all->end, own.end)} : own;
  };
  for (const sim::Span& span : trace.spans()) {
    if (span.rank != rank || span.kind != sim::SpanKind::host) continue;
    const auto index = static_cast<std::size_t>(span.id.iteration);
    const SpanPurpose purpose = purpose_of(plan, span);
    if (purpose.task == nullptr || index >= iterations.size()) continue;
    if (purpose.phase == StepPhase::input) add(iterations[index].input, span);
    if (purpose.phase == StepPhase::checkpoint) add(iterations[index].checkpoint, span);
  }
  for (IterationPoints& points : iterations) {
    if (points.checkpoint.has_value()) points.iteration_end = points.checkpoint->end;
  }
}

void StepView::add_data_waits() {
  const IterationPoints* before = nullptr;
  for (IterationPoints& points : iterations) {
    Seconds begin = points.input.has_value() ? points.input->start : 0;
    if (before != nullptr) {
      points.data_aug_bound = points.fp_start - before->iteration_end;
      begin = before->iteration_end;
    }
    if (points.input.has_value()) {
      points.data_wait = std::max(0.0, std::min(points.input->end, points.fp_start) - begin);
    }
    before = &points;
  }
}

void StepView::add_points(const Plan& plan, const sim::Trace& trace, Rank rank) {
  constexpr Seconds none = std::numeric_limits<Seconds>::infinity();
  visit_spans(plan, trace, rank, [&](const sim::Span& span, const SpanPurpose& purpose) {
    const auto index = static_cast<std::size_t>(span.id.iteration);
    if (index >= iterations.size()) {
      IterationPoints fresh;
      fresh.fp_start = fresh.bp_start = none;
      fresh.fp_end = -none;
      iterations.resize(index + 1, fresh);
    }
    IterationPoints& points = iterations[index];
    points.iteration_end = std::max(points.iteration_end, span.end);
    if (purpose.phase == StepPhase::reduction) {
      points.allreduces.resize(std::max<std::size_t>(points.allreduces.size(), purpose.segment + 1));
      // A compression hook has several spans, of kernels and collectives.
      sim::Interval& reduction = points.allreduces[purpose.segment];
      const bool later = purpose.task->purpose.action.has_value() && reduction.end > 0;
      reduction = later ? sim::Interval{std::min(reduction.start, span.start), std::max(reduction.end, span.end)}
                        : sim::Interval{span.start, span.end};
    } else if (span.kind == sim::SpanKind::collective) {
      if (purpose.phase == StepPhase::check) points.overflow_flag = {span.start, span.end};
    } else if (is_step_kernel(purpose.phase)) {
      points.fp_start = std::min(points.fp_start, span.start);
      points.bp_end = std::max(points.bp_end, span.end);
      if (purpose.phase == StepPhase::forward) points.fp_end = std::max(points.fp_end, span.end);
      if (purpose.phase == StepPhase::backward) points.bp_start = std::min(points.bp_start, span.start);
    }
  });
  for (IterationPoints& points : iterations) {
    points.fp_end = std::max(points.fp_end, points.fp_start);
    points.bp_start = std::min(points.bp_start, points.bp_end);
  }
}

void StepView::add_last_iteration(const Plan& plan, const sim::Trace& trace, Rank rank, const MessageStarts& messages) {
  const Role& role = plan.role(rank);
  const auto last = static_cast<std::int32_t>(iterations.size()) - 1;
  std::vector<sim::Interval> kernels;
  std::vector<sim::Interval> behind;   // checks and updates
  std::vector<sim::Interval> forward;  // and backward: all others
  std::vector<sim::Interval> communication;
  std::vector<sim::Interval> check_kernels;
  std::vector<Seconds> kernel_ends(role.program->kernels.size(), fp_start);
  std::optional<std::uint32_t> flag;
  std::map<std::tuple<StepPhase, std::uint32_t, std::uint32_t>, sim::Interval> extents;  // by phase, chunk, micro-batch
  TensorMemory memory(role);
  visit_spans(plan, trace, rank, [&](const sim::Span& span, const SpanPurpose& purpose) {
    if (span.id.iteration != last) return;
    const sim::Interval interval{span.start, span.end};
    memory.add(span);
    if (span.kind == sim::SpanKind::collective) {
      communication.push_back({messages.under_way(span), span.end});
      if (purpose.phase == StepPhase::check) flag = std::get<CollectiveTask>(purpose.task->work).collective;
      return;
    }
    add(kernels, interval);
    kernel_ends[std::get<KernelBlock>(purpose.task->work).first + span.id.part] = span.end;
    if (is_step_kernel(purpose.phase)) {
      const Purpose& of = purpose.task->purpose;
      sim::Interval& pass = extents.try_emplace({of.phase, of.chunk, of.micro_batch}, interval).first->second;
      pass = {std::min(pass.start, span.start), std::max(pass.end, span.end)};
    }
    const bool compresses = purpose.phase == StepPhase::reduction;
    if (!compresses) add(is_step_kernel(purpose.phase) ? forward : behind, interval);
    if (purpose.phase == StepPhase::check) check_kernels.push_back(interval);
  });
  const std::vector<sim::Interval> busy = unite(std::move(kernels));
  communication = unite(std::move(communication));
  computing = length(busy);
  communicating = length(communication);
  not_overlapped = communicating - overlap(communication, busy);
  const std::vector<sim::Interval> step = unite(std::move(forward));
  exposed = communicating - overlap(communication, step);
  phases.update = length(unite(std::move(behind)));
  for (const auto& [key, pass] : extents) {
    (std::get<StepPhase>(key) == StepPhase::forward ? phases.forward : phases.backward) += pass.length();
  }
  for (const models::Gradient& gradient : role.program->gradients) {
    gradient_ready.push_back(kernel_ends.at(gradient.kernel) - fp_start);
  }
  activations = std::move(memory).points(fp_start);
  std::erase_if(activations, [&](const MemoryPoint& point) { return point.date >= bp_end; });
  if (!activations.empty() && activations.back().bytes > 0) activations.push_back({bp_end, 0});
  if (!check_kernels.empty()) {
    checks.emplace();
    checks->start = check_kernels.front().start - fp_start;
    checks->kernels_end = check_kernels.back().end - fp_start;
    checks->end = checks->kernels_end;
  }
  if (checks.has_value() && flag.has_value()) {
    const sim::Interval span = *iterations.back().overflow_flag;
    checks->algorithm = plan.collectives[*flag].algorithm();
    checks->flag = {span.start - fp_start, span.end - fp_start};
    checks->end = std::max(checks->end, checks->flag.end);
  }
  add_segments(plan, rank, step);
}

void StepView::add_segments(const Plan& plan, Rank rank, const std::vector<sim::Interval>& step) {
  const IterationPoints& points = iterations.back();
  const auto last = static_cast<std::uint32_t>(iterations.size()) - 1;
  struct Reduction {
    std::uint32_t segment;
    std::uint32_t collective;  // the first one, which other segments may share
    Bytes bytes;               // of all
  };
  std::vector<Reduction> reductions;
  Bytes total = 0;
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<std::size_t> seen(plan.role(rank).segments.size(), none);
  for (const PlanTask& task : plan.role(rank).tasks) {
    const auto* work = std::get_if<CollectiveTask>(&task.work);
    if (work == nullptr || task.purpose.phase != StepPhase::reduction || !task.steps.contains(last)) continue;
    const Bytes bytes = plan.collectives[work->collective].operation.payload();
    std::size_t& place = seen[task.purpose.segment];
    if (place == none) {
      place = reductions.size();
      reductions.push_back({task.purpose.segment, work->collective, bytes});
    } else if (task.purpose.action.has_value()) {
      reductions[place].bytes += bytes;
    } else {
      continue;  // several micro-batches may reduce it
    }
    total += bytes;
  }
  for (const auto& [segment, number, bytes] : reductions) {
    const PlannedCollective& collective = plan.collectives[number];
    const sim::Interval span = points.allreduces.at(segment);
    const Seconds time = span.length();
    const double ranks = collective.operation.ranks;
    SegmentFigures figures{.segment = plan.role(rank).segments[segment],
                           .collective = number,
                           .bytes = bytes,
                           .algorithm = collective.algorithm(),
                           .start = span.start - fp_start,
                           .end = span.end - fp_start};
    figures.share = total == 0 ? 0 : static_cast<double>(figures.bytes) / static_cast<double>(total);
    for (std::uint32_t g = figures.segment.first; g <= figures.segment.last; ++g) {
      figures.ready = std::max(figures.ready, gradient_ready[g]);
    }
    figures.hidden = time > 0 ? overlap({span}, step) / time : 0;
    figures.algbw = time > 0 ? static_cast<double>(figures.bytes) / time : 0;
    const double passes = collective.operation.collective == Collective::allreduce ? 2 : 1;
    figures.busbw = figures.algbw * passes * (ranks - 1) / ranks;
    segments.push_back(std::move(figures));
  }
}

}  // namespace hcclsim::hccl
