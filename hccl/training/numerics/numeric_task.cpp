#include "hccl/training/numerics/numeric_task.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "hccl/training/numerics/replicas/replica_communication.hpp"
#include "hccl/training/numerics/replicas/stage_collectives.hpp"

namespace hcclsim::hccl {
namespace {

using Kind = NumericTask::Kind;

/// One end of a message at a role: the distance of the other end, the tag and the micro-batch.
using MessageEnd = std::tuple<std::uint32_t, std::int64_t, std::uint32_t, std::uint32_t>;

/// What a role does, in the order of its tasks.
class RoleTasks {
 public:
  /// `number`: of the role among those that compute.
  RoleTasks(const Plan& plan, const Role& role, std::uint32_t number) : plan_(plan), role_(role), number_(number) {
    for (const PlanTask& task : role_.tasks) add(task);
    contract();
  }

  struct Pass {
    std::vector<const PlanTask*> sends;
    std::vector<const PlanTask*> receives;
  };

  std::vector<NumericTask> tasks;

  /// Messages of a task that computes.
  [[nodiscard]] const Pass& pass(const NumericTask& task) const {
    static const Pass none;
    const auto found = passes_.find(key(task.kind, task.chunk, task.micro_batch));
    return found == passes_.end() ? none : found->second;
  }

 private:
  using Key = std::tuple<Kind, std::uint32_t, std::uint32_t>;
  static Key key(Kind kind, std::uint32_t chunk, std::uint32_t micro_batch) { return {kind, chunk, micro_batch}; }

  void add(const PlanTask& task) {
    const Purpose& purpose = task.purpose;
    const Kind direction = purpose.phase == StepPhase::backward ? Kind::backward : Kind::forward;
    if (std::holds_alternative<SendTask>(task.work)) {
      passes_[key(direction, purpose.chunk, purpose.micro_batch)].sends.push_back(&task);
    } else if (std::holds_alternative<ReceiveTask>(task.work)) {
      passes_[key(direction, purpose.chunk, purpose.micro_batch)].receives.push_back(&task);
    } else if (const auto* block = std::get_if<KernelBlock>(&task.work)) {
      add_kernels(task, *block, direction);
    } else if (std::holds_alternative<HostWork>(task.work) && task.kernel != Purpose::none) {
      add_kernels(task, {task.kernel, 1}, direction);
    } else if (const auto* work = std::get_if<CollectiveTask>(&task.work)) {
      add_collective(purpose, plan_.collectives[work->collective]);
    }
  }

  void add_kernels(const PlanTask& task, const KernelBlock& block, Kind direction) {
    const Purpose& purpose = task.purpose;
    switch (purpose.phase) {
      case StepPhase::forward:
      case StepPhase::backward:
        add_pass(direction, purpose);
        return;
      case StepPhase::check:
        // The norm and the factor of the clip follow from the reduced gradients alone.
        if (role_.program->overflow_flag && (tasks.empty() || tasks.back().kind != Kind::check)) {
          tasks.push_back(made(Kind::check, purpose));
        }
        return;
      case StepPhase::update:
        for (std::uint32_t k = block.first; k < block.first + block.count; ++k) {
          const models::Kernel& kernel = role_.program->kernels[k];
          if (!kernel.owners) continue;
          std::vector<std::uint32_t>& items = joined(Kind::update, purpose);
          if (items.empty() || items.back() != kernel.gradient) items.push_back(kernel.gradient);
        }
        return;
      case StepPhase::reduction:
        return;  // of a compression hook, which is carried out as a whole with its first collective
      case StepPhase::gather:
      case StepPhase::result:
      case StepPhase::input:
      case StepPhase::checkpoint:
        break;
    }
    internal_error("kernels in a phase of communication or of the host");
  }

  void add_pass(Kind direction, const Purpose& purpose) {
    if (seen_.insert(key(direction, purpose.chunk, purpose.micro_batch)).second) {
      tasks.push_back(made(direction, purpose));
    }
  }

  void add_collective(const Purpose& purpose, const PlannedCollective& collective) {
    if (purpose.phase == StepPhase::check) return;  // the flag is what the checks of all ranks say
    if (purpose.phase == StepPhase::gather && purpose.segment == Purpose::none) {
      joined(Kind::broadcast, purpose).push_back(broadcasts_++);
      return;
    }
    if (purpose.phase == StepPhase::gather) {
      const bool late = !tasks.empty() && tasks.back().computes() && tasks.back().chunk == purpose.chunk &&
                        tasks.back().micro_batch == purpose.micro_batch;
      NumericTask gather = made(Kind::gather, purpose);
      gather.items = {purpose.segment};
      tasks.insert(tasks.end() - (late ? 1 : 0), std::move(gather));
      return;
    }
    if (purpose.phase != StepPhase::reduction) {
      add_pass(purpose.phase == StepPhase::backward ? Kind::backward : Kind::forward, purpose);
      return;
    }
    const bool whole = collective.operation.collective == Collective::allreduce;
    const bool mirrors = whole && leaves_parts(purpose.segment);
    std::vector<std::uint32_t>& segments = joined(mirrors ? Kind::mirror : Kind::reduce, purpose);
    if (segments.empty() || segments.back() != purpose.segment) segments.push_back(purpose.segment);
  }

  [[nodiscard]] bool leaves_parts(std::uint32_t segment) const {
    const models::Gradient& first = role_.program->gradients[role_.segments[segment].first];
    const auto& parameters = role_.program->parameters;
    return !parameters.empty() && parameters[first.parameter].shards > 1;
  }

  [[nodiscard]] NumericTask made(Kind kind, const Purpose& purpose) const {
    return {.kind = kind, .role = number_, .chunk = purpose.chunk, .micro_batch = purpose.micro_batch};
  }

  /// Items of the last task, which is of this kind.
  std::vector<std::uint32_t>& joined(Kind kind, const Purpose& purpose) {
    if (tasks.empty() || tasks.back().kind != kind) tasks.push_back(made(kind, purpose));
    return tasks.back().items;
  }

  /// Makes one task of forward and backward that follow each other, where neither messages nor collectives come
  /// between.
  void contract() {
    if (!passes_.empty() || StageCollectives::exist(role_)) return;
    std::vector<NumericTask> shorter;
    for (const NumericTask& task : tasks) {
      const bool follows = task.kind == Kind::backward && !shorter.empty() && shorter.back().kind == Kind::forward &&
                           shorter.back().micro_batch == task.micro_batch;
      if (follows) {
        shorter.back().kind = Kind::step;
      } else {
        shorter.push_back(task);
      }
    }
    // A stage computes all micro-batches in one way.
    if (std::ranges::none_of(shorter, [](const NumericTask& task) { return task.kind == Kind::backward; })) {
      tasks = std::move(shorter);
    }
  }

  const Plan& plan_;
  const Role& role_;
  std::uint32_t number_;
  std::uint32_t broadcasts_ = 0;
  std::map<Key, Pass> passes_;
  std::set<Key> seen_;
};

/// Puts the tasks of all roles into one order.
class Merge {
 public:
  explicit Merge(const Plan& plan) : plan_(plan), computing_(computing_roles(plan)) {
    for (std::uint32_t role = 0; role < computing_.size(); ++role) {
      roles_.emplace_back(plan, of_plan(role), role);
      next_.push_back(0);
      first_rank_.push_back(
          static_cast<Rank>(std::ranges::find(plan.role_of, computing_[role]) - plan.role_of.begin()));
      for (const PlanTask& task : of_plan(role).tasks) {
        if (const auto* receive = std::get_if<ReceiveTask>(&task.work)) {
          receivers_[{role, receive->offset, receive->tag, task.purpose.micro_batch}] = operator_of(role, task);
        }
      }
    }
  }

  std::vector<NumericTask> run() {
    bool moves = true;
    while (moves) {
      moves = false;
      for (std::uint32_t role = 0; role < roles_.size(); ++role) moves = advance(role) || moves;
    }
    for (const Kind kind : {Kind::check, Kind::update, Kind::broadcast}) {
      for (std::uint32_t role = 0; role < roles_.size(); ++role) finish(role, kind);
    }
    for (std::uint32_t role = 0; role < roles_.size(); ++role) {
      if (next_[role] < roles_[role].tasks.size()) internal_error("role {} waits for a message for ever", role);
    }
    mark_ends();
    return std::move(order_);
  }

 private:
  [[nodiscard]] const Role& of_plan(std::uint32_t role) const { return plan_.roles[computing_[role]]; }

  /// The role that computes what a rank does.
  [[nodiscard]] std::uint32_t role_of(std::size_t rank) const {
    const std::uint32_t stage = plan_.roles[plan_.role_of[rank]].stage;
    return static_cast<std::uint32_t>(
        std::ranges::find(computing_, stage, [&](std::uint32_t role) { return plan_.roles[role].stage; }) -
        computing_.begin());
  }

  [[nodiscard]] models::OperatorId operator_of(std::uint32_t role, const PlanTask& task) const {
    return of_plan(role).program->kernels[task.kernel].op;
  }

  /// Emits the tasks of a role up to its checks and updates, as far as what they read is there.
  bool advance(std::uint32_t role) {
    bool moved = false;
    const std::vector<NumericTask>& tasks = roles_[role].tasks;
    for (; next_[role] < tasks.size(); ++next_[role]) {
      const NumericTask& task = tasks[next_[role]];
      if (task.kind == Kind::check || task.kind == Kind::update || task.kind == Kind::broadcast) break;
      if (task.computes() && !ready(role, task)) break;
      order_.push_back(task);
      if (task.computes()) deliver(role, task);
      moved = true;
    }
    return moved;
  }

  [[nodiscard]] bool ready(std::uint32_t role, const NumericTask& task) const {
    return std::ranges::all_of(roles_[role].pass(task).receives, [&](const PlanTask* receive) {
      const auto& work = std::get<ReceiveTask>(receive->work);
      return delivered_.contains({role, work.offset, work.tag, receive->purpose.micro_batch});
    });
  }

  void deliver(std::uint32_t role, const NumericTask& task) {
    for (const PlanTask* send : roles_[role].pass(task).sends) {
      const auto& work = std::get<SendTask>(send->work);
      const std::uint32_t to = role_of(static_cast<std::size_t>(first_rank_[role] + work.offset));
      const MessageEnd end{to, -work.offset, work.tag, send->purpose.micro_batch};
      const auto receiver = receivers_.find(end);
      if (receiver == receivers_.end()) internal_error("role {} sends what nobody receives", role);
      delivered_.insert(end);
      order_.push_back({.kind = Kind::message,
                        .role = role,
                        .chunk = send->purpose.chunk,
                        .micro_batch = send->purpose.micro_batch,
                        .sender = operator_of(role, *send),
                        .receiver = receiver->second,
                        .to = to,
                        .returns = send->purpose.phase == StepPhase::backward});
    }
  }

  void finish(std::uint32_t role, Kind kind) {
    const std::vector<NumericTask>& tasks = roles_[role].tasks;
    for (; next_[role] < tasks.size() && tasks[next_[role]].kind == kind; ++next_[role]) {
      const bool again = kind == Kind::check && order_.back().kind == Kind::check;
      if (!again) order_.push_back(tasks[next_[role]]);
    }
  }

  void mark_ends() {
    std::set<std::pair<std::uint32_t, std::uint32_t>> ended;
    for (std::size_t i = order_.size(); i-- > 0;) {
      NumericTask& task = order_[i];
      if (task.computes() || task.kind == Kind::message) {
        task.ends = ended.insert({task.role, task.micro_batch}).second;
      }
    }
  }

  const Plan& plan_;
  std::vector<std::uint32_t> computing_;
  std::vector<RoleTasks> roles_;
  std::vector<std::size_t> next_;
  std::vector<Rank> first_rank_;
  std::map<MessageEnd, models::OperatorId> receivers_;
  std::set<MessageEnd> delivered_;
  std::vector<NumericTask> order_;
};

}  // namespace

std::vector<NumericTask> numeric_tasks(const Plan& plan) { return Merge(plan).run(); }

}  // namespace hcclsim::hccl
