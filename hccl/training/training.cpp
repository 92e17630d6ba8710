#include "hccl/training/training.hpp"

#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/parallel/plan.hpp"
#include "hccl/runtime/runtime.hpp"
#include "hccl/training/executor.hpp"
#include "hccl/training/intervals.hpp"

namespace hcclsim::hccl {
namespace {

Bytes segment_bytes(const device::Workload& workload, const Segment& segment) {
  Bytes bytes = 0;
  for (std::uint32_t g = segment.first; g <= segment.last; ++g) {
    bytes += workload.gradients[g].elements * size_of(workload.gradient_type);
  }
  return bytes;
}

StepSchedules make_schedules(sim::Cluster& cluster, const device::Workload& workload, const device::Soc& soc,
                             const TrainingOptions& options, const Communicator& world) {
  StepSchedules schedules;
  const Topology topology = topology_of(world, cluster);
  const auto allreduce = [&](std::uint64_t elements, DataType type) {
    return make_collective(options.allreduce_request(elements, type), topology, soc);
  };
  for (const Segment& segment : options.segments) {
    const std::uint64_t elements = segment_bytes(workload, segment) / size_of(workload.gradient_type);
    schedules.allreduces.push_back(allreduce(elements, workload.gradient_type));
  }
  if (workload.overflow_flag) {
    schedules.overflow_flag = allreduce(1, DataType::fp32);
  }
  return schedules;
}

/// Spans of one rank in one iteration, sorted into what the result needs.
struct RankSpans {
  std::vector<sim::Span> kernels;   ///< forward and backward, in launch order
  std::vector<Interval> after;      ///< kernels of checks and updates, in launch order
  std::vector<Interval> computing;  ///< union of all kernels
  std::vector<sim::Span> allreduces;
};

RankSpans spans_of(const sim::Trace& trace, const TrainingOptions& options, std::size_t kernels) {
  RankSpans spans;
  std::vector<Interval> busy;
  for (const sim::Span& span : trace.spans()) {
    if (span.rank != options.rank || span.iteration != static_cast<std::int32_t>(options.iterations) - 1) continue;
    if (span.kind == sim::SpanKind::collective) spans.allreduces.push_back(span);
    if (span.kind != sim::SpanKind::kernel) continue;
    busy.push_back({span.start, span.end});
    if (span.stream == compute_stream && spans.kernels.size() < kernels) {
      spans.kernels.push_back(span);
    } else {
      spans.after.push_back(busy.back());
    }
  }
  spans.computing = unite(std::move(busy));
  return spans;
}

/// Statistics of the last iteration's collective of a segment: the last that ended under its name.
const CollectiveStats& stats_of(const Runtime& runtime, const std::string& name) {
  const auto& all = runtime.collectives();
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const auto& stats) { return stats.name == name; });
  if (found == all.rend()) internal_error("{} did not end", name);
  return *found;
}

void fill_segments(TrainingResult& result, const RankSpans& spans, const device::Workload& workload,
                   const TrainingOptions& options, const Plan& plan, const Runtime& runtime,
                   const sim::Cluster& cluster) {
  Bytes total = 0;
  for (const Segment& segment : options.segments) total += segment_bytes(workload, segment);
  for (std::size_t s = 0; s < options.segments.size(); ++s) {
    SegmentResult out;
    out.segment = options.segments[s];
    out.bytes = segment_bytes(workload, out.segment);
    out.share = total == 0 ? 0 : static_cast<double>(out.bytes) / static_cast<double>(total);
    for (std::uint32_t g = out.segment.first; g <= out.segment.last; ++g) {
      out.ready = std::max(out.ready, result.gradient_ready[g]);
    }
    const sim::Span& span = spans.allreduces.at(s);
    const Seconds time = span.end - span.start;
    const double ranks = options.npus;
    out.algorithm = plan.collectives[s].schedule->algorithm;
    out.start = span.start - result.last_fp_start;
    out.end = span.end - result.last_fp_start;
    out.hidden = time > 0 ? overlap({{span.start, span.end}}, spans.computing) / time : 0;
    out.algbw = time > 0 ? static_cast<double>(out.bytes) / time : 0;
    out.busbw = out.algbw * 2 * (ranks - 1) / ranks;
    out.limit = find_bottleneck(stats_of(runtime, plan.collectives[s].name), cluster, span.start);
    result.segments.push_back(std::move(out));
  }
}

/// The checks are the first kernels after the backward pass in their stream; the flag is the last collective.
std::optional<GradientCheckTimes> check_times(const RankSpans& spans, const device::Workload& workload,
                                              const StepSchedules& schedules, Seconds fp_start) {
  std::size_t kernels = workload.clip_factor.has_value() ? 1 : 0;
  for (const device::TimedGradient& gradient : workload.gradients) kernels += gradient.checks.size();
  if (kernels == 0) return std::nullopt;
  GradientCheckTimes times;
  times.start = spans.after.front().start - fp_start;
  times.kernels_end = spans.after.at(kernels - 1).end - fp_start;
  times.end = times.kernels_end;
  if (workload.overflow_flag) {
    times.algorithm = schedules.overflow_flag->algorithm;
    times.flag_start = spans.allreduces.back().start - fp_start;
    times.flag_end = spans.allreduces.back().end - fp_start;
    times.end = std::max(times.end, times.flag_end);
  }
  return times;
}

/// Mean distance of successive iteration ends, without the first iteration if there are others: it starts from rest.
Seconds mean_step(const std::vector<Seconds>& ends, Seconds start) {
  if (ends.size() == 1) return ends.front() - start;
  return (ends.back() - ends.front()) / static_cast<double>(ends.size() - 1);
}

void check_options(const device::Workload& workload, const sim::Cluster& cluster, const TrainingOptions& options) {
  if (options.npus == 0 || options.npus > cluster.size()) {
    bad_input("option", "{} NPUs asked for, the platform has {}", options.npus, cluster.size());
  }
  if (options.rank >= options.npus) {
    bad_input("option", "rank {} does not take part; ranks are 0 to {}", options.rank, options.npus - 1);
  }
  for (const Rank rank : options.traced) {
    if (rank >= options.npus) {
      bad_input("option", "traced rank {} does not take part; ranks are 0 to {}", rank, options.npus - 1);
    }
  }
  if (options.iterations == 0) bad_input("option", "at least one iteration is needed");
  if (workload.kernels.empty() || workload.gradients.empty()) internal_error("a workload needs kernels and gradients");
  if (options.segments.empty() || options.segments.back().last + 1 != workload.gradients.size()) {
    internal_error("the segments do not cover the {} gradients", workload.gradients.size());
  }
}

}  // namespace

CollectiveRequest TrainingOptions::allreduce_request(std::uint64_t elements, DataType type) const {
  return {.operation = {.ranks = npus, .elements = elements, .type = type},
          .algorithm = allreduce,
          .launch = launch,
          .config = config,
          .levels = levels};
}

TrainingResult simulate_training(sim::Cluster& cluster, const device::Workload& workload, const device::Soc& soc,
                                 const device::TaskCosts& costs, const TrainingOptions& options) {
  check_options(workload, cluster, options);
  const Communicator world = world_communicator(options.npus);
  const StepSchedules schedules = make_schedules(cluster, workload, soc, options, world);
  const Plan plan = data_parallel_plan(workload, world, options.segments, schedules, options.hcom_parallel);

  TrainingResult result;
  std::vector<Rank> traced = options.traced;
  traced.push_back(options.rank);
  result.trace.select(traced, cluster.size(), options.trace_tasks);

  sim::EventLoop loop;
  const std::unique_ptr<sim::Network> network = sim::make_network(options.network, cluster, loop);
  sim::FlowLog log{static_cast<std::int32_t>(options.iterations) - 1};
  const Machine machine{loop,
                        *network,
                        cluster,
                        costs,
                        soc.hbm_bandwidth,
                        result.trace,
                        options.config.exec_timeout,
                        options.record_flows ? &log : nullptr};
  Runtime runtime(machine);
  PlanExecutor executor(plan, runtime, result.trace, options.skew, options.iterations,
                        options.launch == LaunchMode::op ? costs.op_launch : 0);
  executor.start();
  runtime.run();
  if (network->completed() != network->started()) {
    simulated_failure("network", "{} of {} transfers did not complete", network->started() - network->completed(),
                      network->started());
  }
  result.transfers = network->completed();

  const RankSpans spans = spans_of(result.trace, options, workload.kernels.size());
  result.last_fp_start = spans.kernels.front().start;
  for (Rank rank = 0; rank < options.npus; ++rank) {
    result.step_times.push_back(mean_step(executor.iteration_ends(rank), options.skew.start(rank)));
  }
  result.step_time = result.step_times[options.rank];
  for (std::size_t i = 0; i < spans.kernels.size(); ++i) {
    if (workload.kernels[i].phase == models::Phase::forward)
      result.fp_end = spans.kernels[i].end - result.last_fp_start;
  }
  result.bp_end = spans.kernels.back().end - result.last_fp_start;
  result.iteration_end = executor.iteration_ends(options.rank).back() - result.last_fp_start;
  result.compute = length(spans.computing);
  result.update = length(unite(spans.after));
  result.checks = check_times(spans, workload, schedules, result.last_fp_start);
  std::vector<Interval> communicating;
  for (const sim::Span& span : spans.allreduces) communicating.push_back({span.start, span.end});
  communicating = unite(std::move(communicating));
  result.communication = length(communicating);
  result.exposed_communication = result.communication - overlap(communicating, spans.computing);
  for (const device::TimedGradient& gradient : workload.gradients) {
    result.gradient_ready.push_back(spans.kernels.at(gradient.kernel).end - result.last_fp_start);
  }
  result.schedules = schedules;
  result.flows = std::move(log.flows);
  fill_segments(result, spans, workload, options, plan, runtime, cluster);
  return result;
}

}  // namespace hcclsim::hccl
