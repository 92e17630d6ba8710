#include "study/run/parallel_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "hccl/parallel/host_tasks.hpp"
#include "hccl/parallel/plan/plan_walk.hpp"
#include "hccl/training/message_starts.hpp"
#include "hccl/training/step_view.hpp"
#include "hccl/training/waits.hpp"
#include "sim/intervals.hpp"
#include "study/run/experiment/experiment.hpp"

namespace hcclsim::study {
namespace {

using hccl::StepPhase;

/// How a rank spends an iteration: every moment of it is of one of these.
struct StageTimes {
  Seconds compute = 0;
  ExposedTimes exposed;
  Seconds host = 0;
  Seconds idle = 0;  ///< without communication, and not for the host
  Seconds sum = 0;
};

/// When what a rank does next is held up by its host: it prepares the batch of the iteration and copies it, it has not
/// issued what a stream does next, or it writes a checkpoint.
std::vector<sim::Interval> held_by_host(const hccl::TimedStep& step, Rank rank, std::int32_t iteration, Seconds begin) {
  const hccl::Role& role = step.plan.role(rank);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Seconds> issued;  // by task and part
  std::vector<const sim::Span*> device;
  std::vector<sim::Interval> held;
  std::optional<Seconds> batch;  // when it is there
  for (const sim::Span& span : step.trace.spans()) {
    if (span.rank != rank || span.id.iteration != iteration) continue;
    const StepPhase phase = purpose_of(step.plan, span).phase;
    if (span.kind == sim::SpanKind::kernel || span.kind == sim::SpanKind::collective) {
      if (span.stream < role.streams.size()) device.push_back(&span);
    } else if (span.kind != sim::SpanKind::host) {
      continue;
    } else if (span.stream >= role.streams.size()) {
      issued[{span.id.task, span.id.part}] = span.end;
    } else if (phase == StepPhase::checkpoint) {
      held.push_back({span.start, span.end});
    } else if (phase == StepPhase::input) {
      batch = std::max(batch.value_or(0), span.end);
    }
  }
  if (batch.has_value() && *batch > begin) held.push_back({begin, *batch});
  std::ranges::stable_sort(device, {}, [](const sim::Span* span) { return span->start; });
  std::vector<Seconds> free(role.streams.size(), begin);
  for (const sim::Span* span : device) {
    if (const auto call = issued.find({span->id.task, span->id.part}); call != issued.end()) {
      // What is beside the computation is held up only if it starts when it is issued.
      const bool computes = span->stream == hccl::role_stream::compute;
      const Seconds from = std::max(free[span->stream], free[hccl::role_stream::compute]);
      const Seconds to = std::min(call->second, span->start);
      if (to > from && (computes || to == span->start)) held.push_back({from, to});
    }
    free[span->stream] = std::max(free[span->stream], span->end);
  }
  return held;
}

using ExposedKind = Seconds ExposedTimes::*;
/// In the order in which they count where nothing waits for any of them.
constexpr std::array<ExposedKind, 6> exposed_kinds{&ExposedTimes::messages, &ExposedTimes::gradients,
                                                   &ExposedTimes::weights,  &ExposedTimes::checks,
                                                   &ExposedTimes::results,  &ExposedTimes::operators};

/// Null: the task is none of communication.
ExposedKind kind_of(const hccl::PlanTask& task) {
  if (std::holds_alternative<hccl::SendTask>(task.work) || std::holds_alternative<hccl::ReceiveTask>(task.work)) {
    return &ExposedTimes::messages;
  }
  if (!std::holds_alternative<hccl::CollectiveTask>(task.work)) return nullptr;
  switch (task.purpose.phase) {
    case StepPhase::reduction:
      return &ExposedTimes::gradients;
    case StepPhase::gather:
      return &ExposedTimes::weights;
    case StepPhase::check:
      return &ExposedTimes::checks;
    case StepPhase::result:
      return &ExposedTimes::results;
    default:
      return &ExposedTimes::operators;
  }
}

std::vector<sim::Interval> times_of_kind(const std::vector<hccl::Wait>& waits, ExposedKind kind) {
  std::vector<sim::Interval> times;
  for (const hccl::Wait& wait : waits) {
    if (kind_of(*wait.task) == kind) times.push_back(wait.time);
  }
  return times;
}

/// For how long a measured NPU waits for its host before a kernel.
Seconds idle_before(const hccl::Plan& plan, const sim::Span& span) {
  const auto* block = std::get_if<hccl::KernelBlock>(&purpose_of(plan, span).task->work);
  return block == nullptr ? 0 : plan.role(span.rank).program->kernels[block->first + span.id.part].idle;
}

/// Of an iteration from that date on.
StageTimes times_of(const hccl::TimedStep& step, Rank rank, std::int32_t iteration, Seconds begin, Seconds length,
                    const hccl::MessageStarts& messages) {
  std::vector<sim::Interval> kernels;
  std::vector<sim::Interval> held = held_by_host(step, rank, iteration, begin);
  std::vector<hccl::Wait> communication;
  for (const sim::Span& span : step.trace.spans()) {
    if (span.rank != rank || span.id.iteration != iteration) continue;
    const hccl::SpanPurpose purpose = purpose_of(step.plan, span);
    if (purpose.task == nullptr) continue;
    if (span.kind == sim::SpanKind::kernel) {
      kernels.push_back({span.start, span.end});
      const Seconds idle = idle_before(step.plan, span);
      if (idle > 0) held.push_back({span.start - idle, span.start});
    }
    if (span.kind == sim::SpanKind::collective) {
      communication.push_back({purpose.task, {messages.under_way(span), span.end}});
    }
  }
  std::vector<std::vector<hccl::Wait>> waits = waits_of(step.plan, step.trace, rank, iteration, messages);
  waits.push_back(std::move(communication));  // that nothing waits for
  std::vector<sim::Interval> taken;
  Seconds time = 0;
  const auto take = [&](const std::vector<sim::Interval>& spans) {
    taken.insert(taken.end(), spans.begin(), spans.end());
    taken = sim::unite(std::move(taken));
    return sim::length(taken) - std::exchange(time, sim::length(taken));
  };
  // Where these overlap, the first one counts.
  StageTimes times{.compute = take(kernels), .exposed = {}};
  for (const std::vector<hccl::Wait>& some : waits) {
    for (const ExposedKind kind : exposed_kinds) times.exposed.*kind += take(times_of_kind(some, kind));
    const std::vector<sim::Interval> by_host = times_of_kind(some, nullptr);
    held.insert(held.end(), by_host.begin(), by_host.end());
  }
  // A host works ahead, while the iteration before is under way.
  for (sim::Interval& one : held) one.start = std::clamp(begin, one.start, one.end);
  times.host = take(held);
  times.sum = std::max(length, time);
  times.idle = times.sum - time;
  return times;
}

/// The end of the pipeline's iteration before the last, or its start. A rank that runs ahead waits for the others.
Seconds begin_of_last(const hccl::TimedStep& step, Rank rank, Seconds start) {
  const std::size_t count = step.pipeline_ends.size();
  return count > 1 ? step.pipeline_ends[count - 2][rank] : start;
}

/// The place of a rank in its group of a family.
Rank place_in(const hccl::GroupFamily& family, Rank rank) {
  for (const hccl::Communicator& group : family.groups) {
    const auto found = std::ranges::find(group.ranks, rank);
    if (found != group.ranks.end()) return static_cast<Rank>(found - group.ranks.begin());
  }
  internal_error("rank {} is in no group of a collective that it calls", rank);
}

/// What the member of a group of n at this place sends at least: where pairs of ranks have counts, what it has for
/// others; else of an allreduce each byte twice but for its own share, of the others once.
Bytes sent_bytes(const hccl::Operation& operation, Rank place) {
  const Rank n = operation.ranks;
  if (counts_pairs(operation.collective) && !operation.counts.empty()) {
    const std::uint64_t own = operation.counts.counts()[std::size_t{place} * n + place];
    return (operation.counts.offset(place, n) - own) * size_of(operation.type);
  }
  const Bytes payload = operation.payload();
  switch (operation.collective) {
    case hccl::Collective::allreduce:
      return 2 * (n - 1) * payload / n;
    case hccl::Collective::reduce_scatter:
    case hccl::Collective::alltoall:
    case hccl::Collective::allgather:
      return (n - 1) * payload / n;
    default:
      return payload;
  }
}

/// Of a rank of each stage.
std::vector<Traffic> traffic_of(const hccl::Plan& plan, const std::vector<Rank>& ranks) {
  std::map<std::tuple<std::uint32_t, std::string, Rank>, std::pair<std::uint64_t, Bytes>> sums;
  for (const Rank rank : ranks) {
    const hccl::Role& role = plan.role(rank);
    const auto add = [&](std::string kind, const hccl::Operation& operation, Bytes bytes) {
      if (operation.ranks == 1) return;
      auto& [count, sum] = sums[{role.stage, std::move(kind), operation.ranks}];
      ++count;
      sum += bytes;
    };
    for (const hccl::PlanTask& task : role.tasks) {
      if (const auto* collective = std::get_if<hccl::CollectiveTask>(&task.work)) {
        const hccl::PlannedCollective& planned = plan.collectives[collective->collective];
        const hccl::Operation& operation = planned.operation;
        const Rank place = operation.counts.empty() ? 0 : place_in(plan.families[planned.family], rank);
        const bool of_operator = task.kernel != hccl::Purpose::none;
        add(fmt::format("{}{}", of_operator ? "operator " : "", name_of(operation.collective)), operation,
            sent_bytes(operation, place));
      } else if (const auto* send = std::get_if<hccl::SendTask>(&task.work)) {
        const hccl::PlannedMessage& message = plan.messages[send->message];
        add("send", *message.schedule, message.bytes);
      }
    }
  }
  std::vector<Traffic> traffic;
  for (const auto& [key, sum] : sums) {
    const auto& [stage, kind, group] = key;
    traffic.push_back({stage, kind, group, sum.first, sum.second});
  }
  return traffic;
}

}  // namespace

const StageFigures& ParallelResult::most_loaded() const {
  return *std::ranges::max_element(stages, {}, &StageFigures::compute);
}

const StageFigures& ParallelResult::fullest() const {
  return *std::ranges::max_element(stages, {}, [](const StageFigures& stage) { return stage.hbm.peak(); });
}

Rank printed_rank(const hccl::TrainingStep& training, std::uint32_t stage) {
  if (training.step.shape.stages == 1) return training.simulation.rank;
  return stage * training.step.stage_ranks() + training.simulation.rank % training.step.stage_ranks();
}

std::string network_title(const models::Program& program) {
  return program.title.substr(0, program.title.rfind(", stage "));
}

ParallelResult parallel_result(const Experiment& experiment, const hccl::TimedStep& step) {
  const hccl::TrainingStep& training = experiment.training;
  const Rank ranks_of_stage = training.step.stage_ranks();
  const bool staged = !experiment.data_parallel;
  const hccl::PipelineShape& shape = training.step.shape;
  ParallelResult result{.plain = !staged && shape.micro_batches == 1,
                        .shape = shape,
                        .data = training.step.groups.empty() ? experiment.replicas : training.replica_count(),
                        .operators = experiment.spec.parallel.operators,
                        .shard = training.stages.front().shard_ranks,
                        .sharing = std::string(name_of(experiment.spec.parallel.optimizer.kind)),
                        .fusion = experiment.fusion,
                        .micro_batch = experiment.batch.micro_batch,
                        .stages = {},
                        .traffic = {},
                        .peak_tensors = {}};
  for (std::uint32_t number = 0; staged && number < shape.stages; ++number) {
    const models::Program& program = *training.stages[number].program;
    for (const models::Gradient& gradient : program.gradients) {
      ++result.parameters;
      if (program.parameters[gradient.parameter].shards == 1) ++result.whole;
    }
  }
  if (result.whole == result.parameters) result.shard = 1;
  const std::uint32_t last = training.simulation.iterations - 1;
  const hccl::Plan last_step = plan_of_step(step.plan, last);
  const hccl::PlanWalk device = walk(without_host_times(last_step), training.simulation.iterations);
  result.ideal = ideal_step(step.plan, experiment.costs, training);
  const hccl::MessageStarts messages(step.plan, step.trace);
  std::vector<Rank> ranks;
  for (std::uint32_t number = 0; number < shape.stages; ++number) {
    const Rank rank = ranks.emplace_back(printed_rank(training, number));
    const Seconds begin = begin_of_last(step, rank, pipeline_start(training, rank));
    const StageTimes times =
        times_of(step, rank, static_cast<std::int32_t>(last), begin, step.pipeline_ends.back()[rank] - begin, messages);
    const Seconds ideal_bubble = device.step - device.computing[step.plan.role_of[rank]];
    const Seconds bubble = std::clamp(ideal_bubble, 0.0, times.idle);
    StageFigures figures{.stage = number,
                         .first_rank = number * ranks_of_stage,
                         .ranks = ranks_of_stage,
                         .layers = {},
                         .step = times.sum,
                         .compute = times.compute,
                         .host = times.host,
                         .bubble = bubble,
                         .wait = times.idle - bubble,
                         .exposed = times.exposed,
                         .ideal_bubble = ideal_bubble,
                         .live_cells = most_live_cells(cells_of_stage(shape, number)),
                         .hbm = experiment.hbm_of_stages[number]};
    for (std::uint32_t chunk = 0; staged && shape.stages > 1 && chunk < shape.chunks; ++chunk) {
      figures.layers.push_back(experiment.layers_of_parts[chunk * shape.stages + number]);
    }
    result.stages.push_back(std::move(figures));
  }
  result.traffic = traffic_of(last_step, ranks);
  const std::uint32_t stage = training.simulation.rank / ranks_of_stage;
  result.peak_tensors =
      tensors_at_peak(*experiment.program, shape.stages > 1 ? cells_of_stage(shape, stage) : std::vector<hccl::Cell>{});
  if (const Bytes results = training.result_bytes(); results > 0) {
    result.peak_tensors.push_back({"results of all micro-batches", results, 1});
    std::ranges::stable_sort(result.peak_tensors, std::ranges::greater(),
                             [](const hccl::LiveAtPeak& tensor) { return tensor.bytes * tensor.copies; });
  }
  return result;
}

std::optional<Throughput> throughput(const Experiment& experiment, Seconds step) {
  if (!experiment.transformer || experiment.flops_per_sample <= 0) return std::nullopt;
  Throughput result{.peak_type = experiment.spec.precision.compute};
  const hccl::TrainingStep& training = experiment.training;
  const double samples =
      static_cast<double>(std::uint64_t{experiment.batch.micro_batch} * experiment.batch.micro_batches) *
      experiment.replicas;
  result.peak = peak_flops(experiment.soc, result.peak_type);
  const double most = result.peak * training.step.npus * step;
  result.samples_per_second = samples / step;
  result.tokens_per_second = result.samples_per_second * experiment.tokens_per_sample;
  result.mfu = samples * experiment.flops_per_sample / most;
  result.hfu =
      result.mfu + experiment.recomputed_flops * experiment.batch.micro_batches * training.step.stage_ranks() / most;
  return result;
}

}  // namespace hcclsim::study
