#include "study/communication/replay/plan_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using hccl::Collective;

constexpr std::uint32_t no_node = ~0U;
constexpr std::uint32_t group_of_one = ~0U;

[[noreturn]] void refuse(std::string_view option, std::string_view why) {
  bad_input("unsupported", "a trace cannot carry {}: {}; leave it out", option, why);
}

/// Chakra's size of a collective.
Bytes size_of_call(const hccl::Operation& operation) {
  if (!operation.counts.empty()) return std::max<Bytes>(operation.payload(), 1);
  const bool blocks = operation.collective == Collective::reduce_scatter ||
                      operation.collective == Collective::alltoall || operation.collective == Collective::scatter;
  return operation.elements * size_of(operation.type) * (blocks ? operation.ranks : 1);
}

class Writer {
 public:
  Writer(const hccl::Plan& plan, ExecutionTrace& trace) : plan_(plan), trace_(trace) {
    trace.groups.push_back(hccl::world_communicator(plan.ranks()));
    for (const hccl::GroupFamily& family : plan.families) {
      std::vector<std::pair<std::uint32_t, bool>>& members = group_of_.emplace_back(plan.ranks(), std::pair{0U, false});
      for (const hccl::Communicator& group : family.groups) {
        const bool alone = group.ranks.size() < 2;
        const std::uint32_t number = alone ? group_of_one : number_of(group, family.groups.size() == 1);
        for (const Rank rank : group.ranks) members[rank] = {number, true};
      }
    }
    for (const hccl::PlannedCollective& collective : plan.collectives) {
      const std::vector<std::uint64_t>& counts = collective.operation.counts.counts();
      counts_of_.push_back(counts.empty() ? 0 : static_cast<std::uint32_t>(trace.counts.size()));
      if (!counts.empty()) trace.counts.push_back(counts);
    }
  }

  void add_rank(Rank rank, std::uint32_t steps) {
    rank_ = rank;
    role_ = &plan_.role(rank);
    dependencies_ = {};
    last_of_stream_.assign(role_->streams.size(), no_node);
    RankTrace& trace = trace_.traces.emplace_back();
    trace.source = fmt::format("rank {} of the plan", rank);
    to_ = &trace;
    trace_.trace_of.push_back(rank);
    for (std::uint32_t step = 0; step < steps; ++step) add_step(step);
    dependencies_.resolve(trace_, trace);
  }

 private:
  /// The first family that is one group of all ranks is the trace's group of them. Others are groups of their own, also
  /// of the same ranks: collectives of one group have one order, those of several need not.
  std::uint32_t number_of(const hccl::Communicator& group, bool alone) {
    if (alone && !has_world_ && group.ranks == trace_.groups.front().ranks) {
      has_world_ = true;
      return TraceNode::world;
    }
    trace_.groups.push_back({std::to_string(trace_.groups.size()), group.ranks});
    return static_cast<std::uint32_t>(trace_.groups.size() - 1);
  }

  void add_step(std::uint32_t step) {
    const std::vector<std::uint32_t> before = last_of_stream_;
    std::vector<bool> begun(role_->streams.size(), false);
    last_of_task_.assign(role_->tasks.size(), no_node);
    for (std::uint32_t number = 0; number < role_->tasks.size(); ++number) {
      const hccl::PlanTask& task = role_->tasks[number];
      if (!task.steps.contains(step)) continue;
      std::vector<std::uint64_t> after;
      for (const std::uint32_t other : task.after) {
        if (last_of_task_[other] != no_node) after.push_back(last_of_task_[other]);
      }
      // A stream begins a step when all of them have ended the last one.
      if (!begun[task.stream]) {
        for (const std::uint32_t node : before) {
          if (node != no_node) after.push_back(node);
        }
      }
      begun[task.stream] = true;
      add_task(task, static_cast<std::int32_t>(step), std::move(after));
      last_of_task_[number] = last_of_stream_[task.stream];
    }
  }

  void add_task(const hccl::PlanTask& task, std::int32_t step, std::vector<std::uint64_t> after) {
    TraceNode node{.stream = static_cast<std::int32_t>(task.stream), .iteration = step};
    if (const auto* block = std::get_if<hccl::KernelBlock>(&task.work)) {
      for (std::uint32_t k = block->first; k < block->first + block->count; ++k) {
        const models::Kernel& kernel = role_->program->kernels[k];
        node.name = trace_.intern(kernel.name);
        node.duration = kernel.duration;
        node.flops = kernel.flops;
        node.bytes = kernel.read + kernel.written;
        add(node, task.stream, std::exchange(after, {}));
      }
      return;
    }
    if (const auto* host = std::get_if<hccl::HostWork>(&task.work)) {
      node.host = true;
      node.duration = host->duration;
      node.name = trace_.intern("host");
    } else if (const auto* collective = std::get_if<hccl::CollectiveTask>(&task.work)) {
      add_collective(collective->collective, node);
    } else if (const auto* send = std::get_if<hccl::SendTask>(&task.work)) {
      add_message(NodeKind::send, send->message, send->offset, send->tag, node);
    } else if (const auto* receive = std::get_if<hccl::ReceiveTask>(&task.work)) {
      add_message(NodeKind::receive, receive->message, receive->offset, receive->tag, node);
    } else {
      refuse("an input pipeline", "it runs ahead of the steps");
    }
    add(node, task.stream, std::move(after));
  }

  void add_collective(std::uint32_t number, TraceNode& node) {
    const hccl::PlannedCollective& collective = plan_.collectives[number];
    const auto& [group, is_member] = group_of_[collective.family][rank_];
    if (!is_member) internal_error("{}: rank {} is in no group of its family", collective.name, rank_);
    const hccl::Operation& operation = collective.operation;
    node.name = trace_.intern(collective.name);
    if (group == group_of_one) {  // nothing to do: a node that keeps the order, as readers take no such collective
      node.duration = 0;
      return;
    }
    node.kind = NodeKind::collective;
    node.group = group;
    node.collective = operation.collective;
    node.type = operation.type;
    node.untyped = false;
    node.op = operation.op;
    node.in_place = operation.in_place;
    node.peer = operation.root;
    node.counts = counts_of_[number];
    node.bytes = size_of_call(operation);
  }

  void add_message(NodeKind kind, std::uint32_t number, std::int64_t offset, std::uint32_t tag, TraceNode& node) {
    const hccl::PlannedMessage& message = plan_.messages[number];
    node.kind = kind;
    node.name = trace_.intern(message.name);
    node.bytes = message.bytes;
    node.type = message.schedule->type;
    node.untyped = false;
    node.peer = static_cast<Rank>(std::int64_t{rank_} + offset);
    node.tag = tag;
  }

  void add(TraceNode node, std::uint32_t stream, std::vector<std::uint64_t> after) {
    node.id = to_->nodes.size();
    if (last_of_stream_[stream] != no_node) after.push_back(last_of_stream_[stream]);
    last_of_stream_[stream] = static_cast<std::uint32_t>(node.id);
    to_->nodes.push_back(node);
    dependencies_.add(std::move(after));
  }

  const hccl::Plan& plan_;
  ExecutionTrace& trace_;
  std::vector<std::vector<std::pair<std::uint32_t, bool>>> group_of_;  // of each family, of each rank
  std::vector<std::uint32_t> counts_of_;                               // of each collective
  bool has_world_ = false;                                             // a family is the group of all ranks
  Rank rank_ = 0;
  const hccl::Role* role_ = nullptr;
  RankTrace* to_ = nullptr;
  DependencyList dependencies_;
  std::vector<std::uint32_t> last_of_stream_;  // nodes
  std::vector<std::uint32_t> last_of_task_;    // of this step
};

}  // namespace

void require_traceable(const hccl::TrainingStep& training) {
  if (training.step.host_launch.has_value())
    refuse("eager execution", "nodes have no time that it takes to issue them");
  if (training.step.launch == hccl::LaunchMode::op)
    refuse("--launch op", "nodes have no time that it takes to issue them");
  if (training.step.input.has_value()) refuse("an input pipeline", "it runs ahead of the steps");
  if (training.simulation.skew.jitters())
    refuse("jitter", "a trace has one duration per kernel, and no random numbers");
  for (Rank rank = 0; rank < training.step.npus; ++rank) {
    if (training.simulation.skew.start(rank) > 0 || training.simulation.skew.speed(rank) != 1) {
      refuse("skew of ranks", "it belongs to NPUs, not to what they do; --fault of the replay slows them down");
    }
  }
  if (training.simulation.hbm_contention)
    refuse("--hbm-contention on", "nodes have durations, and do not share the HBM");
  if (training.step.allreduce != hccl::Algorithm::automatic || !training.step.levels.empty()) {
    refuse("an algorithm that is asked for", "a replay chooses algorithms as HCCL does");
  }
}

ExecutionTrace trace_of(const hccl::Plan& plan, const hccl::TrainingStep& training) {
  require_traceable(training);
  ExecutionTrace trace;
  Writer writer(plan, trace);
  for (Rank rank = 0; rank < plan.ranks(); ++rank) writer.add_rank(rank, training.simulation.iterations);
  return trace;
}

}  // namespace hcclsim::study
