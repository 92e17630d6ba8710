#include "study/run/parallel_result.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "hccl/parallel/plan_walk.hpp"
#include "hccl/training/step_view.hpp"
#include "sim/intervals.hpp"
#include "study/experiment.hpp"

namespace hcclsim::study {
namespace {

using hccl::StepPhase;

/// Start of each message of the last iteration on its later end: (source, destination, tag) -> starts in order.
class MessageStarts {
 public:
  MessageStarts(const hccl::Plan& plan, const sim::Trace& trace, std::int32_t iteration) {
    for (const sim::Span& span : trace.spans()) {
      if (span.id.iteration != iteration || span.kind != sim::SpanKind::collective) continue;
      const auto key = key_of(plan, span);
      if (!key.has_value()) continue;
      auto& [sends, receives] = starts_[key->second];
      (key->first ? sends : receives).push_back(span.start);
    }
  }

  /// When both ends of the next message of this kind were there; called in the order of the spans of a rank.
  [[nodiscard]] Seconds both_there(const hccl::Plan& plan, const sim::Span& span,
                                   std::map<std::tuple<Rank, Rank, std::uint32_t, bool>, std::size_t>& taken) const {
    const auto key = key_of(plan, span);
    if (!key.has_value()) return span.start;
    const auto& [source, destination, tag] = key->second;
    const std::size_t number = taken[{source, destination, tag, key->first}]++;
    const auto& [sends, receives] = starts_.at(key->second);
    const std::vector<Seconds>& other = key->first ? receives : sends;
    return number < other.size() ? std::max(span.start, other[number]) : span.start;
  }

 private:
  using Key = std::tuple<Rank, Rank, std::uint32_t>;

  static std::optional<std::pair<bool, Key>> key_of(const hccl::Plan& plan, const sim::Span& span) {
    const hccl::PlanTask* task = purpose_of(plan, span).task;
    if (task == nullptr) return std::nullopt;
    if (const auto* send = std::get_if<hccl::SendTask>(&task->work)) {
      return std::pair(true, Key(span.rank, static_cast<Rank>(span.rank + send->offset), send->tag));
    }
    if (const auto* receive = std::get_if<hccl::ReceiveTask>(&task->work)) {
      return std::pair(false, Key(static_cast<Rank>(span.rank + receive->offset), span.rank, receive->tag));
    }
    return std::nullopt;
  }

  std::map<Key, std::pair<std::vector<Seconds>, std::vector<Seconds>>> starts_;
};

struct StageTimes {
  Seconds compute = 0;
  ExposedTimes exposed;
};

StageTimes times_of(const hccl::Plan& plan, const sim::Trace& trace, Rank rank, std::int32_t iteration,
                    const MessageStarts& messages) {
  std::vector<sim::Interval> busy;
  std::vector<sim::Interval> between_stages;
  std::map<StepPhase, std::vector<sim::Interval>> collectives;
  std::map<std::tuple<Rank, Rank, std::uint32_t, bool>, std::size_t> taken;
  for (const sim::Span& span : trace.spans()) {
    if (span.rank != rank || span.id.iteration != iteration) continue;
    const hccl::SpanPurpose purpose = purpose_of(plan, span);
    if (purpose.task == nullptr) continue;
    if (span.kind == sim::SpanKind::kernel) {
      busy.push_back({span.start, span.end});
    } else if (span.kind == sim::SpanKind::collective) {
      if (std::holds_alternative<hccl::CollectiveTask>(purpose.task->work)) {
        collectives[purpose.phase].push_back({span.start, span.end});
      } else {
        between_stages.push_back({messages.both_there(plan, span, taken), span.end});
      }
    }
  }
  busy = sim::unite(std::move(busy));
  const auto exposed = [&](std::vector<sim::Interval> spans) {
    spans = sim::unite(std::move(spans));
    return sim::length(spans) - sim::overlap(spans, busy);
  };
  return {sim::length(busy),
          {.messages = exposed(std::move(between_stages)),
           .gradients = exposed(collectives[StepPhase::reduction]),
           .weights = exposed(collectives[StepPhase::gather]),
           .checks = exposed(collectives[StepPhase::check]),
           .results = exposed(collectives[StepPhase::result])}};
}

/// What a rank of a group of n sends at least: of an allreduce each byte twice but for its own share, of the others
/// once.
Bytes sent_bytes(const hccl::Operation& operation) {
  const Bytes payload = operation.payload();
  const Rank n = operation.ranks;
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

std::vector<Traffic> traffic_of(const hccl::Plan& plan) {
  std::map<std::tuple<std::uint32_t, std::string, Rank>, std::pair<std::uint64_t, Bytes>> sums;
  std::set<std::uint32_t> stages;
  for (const hccl::Role& role : plan.roles) {
    if (!stages.insert(role.stage).second) continue;  // the ranks of a stage send as much as its first
    const auto add = [&](std::string kind, const hccl::Operation& operation, Bytes bytes) {
      if (operation.ranks == 1) return;
      auto& [count, sum] = sums[{role.stage, std::move(kind), operation.ranks}];
      ++count;
      sum += bytes;
    };
    for (const hccl::PlanTask& task : role.tasks) {
      if (const auto* collective = std::get_if<hccl::CollectiveTask>(&task.work)) {
        const hccl::Operation& operation = plan.collectives[collective->collective].operation;
        add(std::string(name_of(operation.collective)), operation, sent_bytes(operation));
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

ParallelResult parallel_result(const Experiment& experiment, const hccl::TimedStep& step) {
  const hccl::TrainingOptions& training = experiment.training;
  const bool staged = experiment.stages.has_value();
  hccl::PipelineShape shape = training.shape;
  shape.micro_batches = experiment.batch.micro_batches;
  ParallelResult result{.shape = shape,
                        .data = training.replica_count(),
                        .shard = staged ? experiment.stages->shard_ranks : 1,
                        .sharing = experiment.sharing,
                        .fusion = experiment.fusion,
                        .micro_batch = experiment.batch.micro_batch,
                        .stages = {},
                        .traffic = {},
                        .peak_tensors = {}};
  const hccl::PlanWalk ideal = walk(step.plan);
  result.ideal = ideal.end;
  const auto last = static_cast<std::int32_t>(training.iterations) - 1;
  const MessageStarts messages(step.plan, step.trace, last);
  for (std::uint32_t number = 0; number < shape.stages; ++number) {
    const Rank first = number * result.data;
    const StageTimes times = times_of(step.plan, step.trace, first, last, messages);
    const std::uint32_t role = step.plan.role_of[first];
    StageFigures figures{.stage = number,
                         .first_rank = first,
                         .ranks = result.data,
                         .layers = {},
                         .compute = times.compute,
                         .bubble = ideal.end - ideal.computing[role],
                         .exposed = times.exposed,
                         .live_cells = most_live_cells(cells_of_stage(shape, number)),
                         .hbm = staged ? experiment.stages->hbm[number] : experiment.hbm};
    figures.wait = std::max(0.0, step.step_times[first] - figures.compute - figures.bubble);
    for (std::uint32_t chunk = 0; staged && shape.stages > 1 && chunk < shape.chunks; ++chunk) {
      figures.layers.push_back(experiment.stages->layers_of_parts[chunk * shape.stages + number]);
    }
    result.stages.push_back(std::move(figures));
  }
  result.traffic = traffic_of(step.plan);
  const std::uint32_t stage = training.rank / result.data;
  result.peak_tensors =
      tensors_at_peak(*experiment.program, shape.stages > 1 ? cells_of_stage(shape, stage) : std::vector<hccl::Cell>{});
  return result;
}

std::optional<Throughput> throughput(const Experiment& experiment, Seconds step) {
  if (experiment.flops_per_sample <= 0 || experiment.tokens_per_sample == 0) return std::nullopt;
  Throughput result{.peak_type = experiment.compute_type};
  const hccl::TrainingOptions& training = experiment.training;
  const double replicas = training.replica_count();
  const double samples =
      static_cast<double>(std::uint64_t{experiment.batch.micro_batch} * experiment.batch.micro_batches) * replicas;
  Flops again = 0;
  const auto add = [&](const models::Program& program) {
    for (const models::Kernel& kernel : program.micro_batch()) {
      if (kernel.recomputed && kernel.cube.m > 0) again += kernel.flops;
    }
  };
  if (experiment.stages.has_value()) {
    for (const hccl::StageProgram& stage : experiment.stages->programs) add(*stage.program);
  } else {
    add(*experiment.program);
  }
  result.peak = peak_flops(experiment.soc, result.peak_type);
  const double most = result.peak * training.npus * step;
  result.tokens_per_second = samples * experiment.tokens_per_sample / step;
  result.mfu = samples * experiment.flops_per_sample / most;
  result.hfu = result.mfu + again * experiment.batch.micro_batches * replicas / most;
  return result;
}

}  // namespace hcclsim::study
