#include "hccl/parallel/data_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

using models::Kernel;
using models::KernelClass;
using models::OperatorKind;

// Streams of the role.
constexpr std::uint32_t compute_stream = 0;
constexpr std::uint32_t communication_stream = 1;
constexpr std::uint32_t update_stream = 2;

Collective collective_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::all_reduce:
      return Collective::allreduce;
    case OperatorKind::all_gather:
      return Collective::allgather;
    case OperatorKind::reduce_scatter:
      return Collective::reduce_scatter;
    case OperatorKind::all_to_all:
      return Collective::alltoall;
    case OperatorKind::broadcast:
      return Collective::broadcast;
    default:
      internal_error("operators of kind {} are no collectives", models::name_of(kind));
  }
}

/// Where a kernel of the program waits for communication, and after which something waits for it.
struct Boundaries {
  explicit Boundaries(const models::Program& program)
      : ends_block(program.micro_batch_kernels, false), waits_for(program.micro_batch_kernels) {
    for (std::uint32_t k = 0; k < program.micro_batch_kernels; ++k) {
      const Kernel& kernel = program.kernels[k];
      if (kernel.kind != KernelClass::communication) continue;
      if (kernel.communication.input != models::no_tensor) {
        const std::uint32_t writer = program.tensors[kernel.communication.input].writer;
        if (writer != models::LiveTensor::none) ends_block[writer] = true;
      }
    }
    for (const models::TensorRead& read : program.reads) {
      const std::uint32_t writer = program.tensors[read.tensor].writer;
      const bool came =
          writer != models::LiveTensor::none && program.kernels[writer].kind == KernelClass::communication;
      if (came) waits_for[read.kernel].push_back(writer);
    }
  }

  std::vector<bool> ends_block;                       // of kernels
  std::vector<std::vector<std::uint32_t>> waits_for;  // of kernels: communication whose output they read
};

/// Adds a role and the collectives that it takes part in to a Plan.
class RoleBuilder {
 public:
  RoleBuilder(std::shared_ptr<const models::Program> program, const DataParallelOptions& options,
              const ReplicaGroups& replicas, const ScheduleMaker& make_schedule, Plan& plan)
      : program_(*program),
        options_(options),
        segments_(replicas.segments),
        make_schedule_(make_schedule),
        task_of_(program_.kernels.size()),
        replicas_(static_cast<std::uint32_t>(plan.families.size())),
        plan_(plan) {
    role_.program = std::move(program);
    role_.streams = {StreamKind::compute, StreamKind::communication, StreamKind::update};
    role_.segments = replicas.segments;
    plan_.families.push_back(replicas.family);
    for (const Communicator& group : replicas.family.groups) {
      for (const Rank rank : group.ranks) plan_.role_of[rank] = static_cast<std::uint32_t>(plan_.roles.size());
    }
  }

  /// Forward and backward, and the allreduces.
  void add_micro_batch() {
    const Boundaries boundaries(program_);
    std::vector<std::uint32_t> ready;  // the kernel with which each segment is
    for (const Segment& segment : segments_) {
      const std::uint32_t before = ready.empty() ? 0 : ready.back();
      ready.push_back(std::max(before, last_kernel_of(segment)));
    }
    std::size_t next = 0;  // segment
    for (std::uint32_t k = 0; k < program_.micro_batch_kernels; ++k) {
      const Kernel& kernel = program_.kernels[k];
      if (kernel.kind == KernelClass::communication) {
        add_communication(k, boundaries);
        continue;
      }
      const std::vector<std::uint32_t> after = tasks_of(boundaries.waits_for[k]);
      if (!after.empty() || open_ == none || phase_of(kernel.phase) != task(open_).purpose.phase) {
        open_block(k, compute_stream, after);
      }
      extend_block(k);
      if (boundaries.ends_block[k]) open_ = none;
      for (; options_.hcom_parallel && next < ready.size() && ready[next] <= k; ++next) start_allreduce(next);
    }
    for (; next < ready.size(); ++next) start_allreduce(next);
    open_ = none;
  }

  /// Checks of all gradients, then what updates wait for beside their allreduces; updates.
  void add_once_per_step() {
    const std::uint32_t stream = options_.update_stream ? update_stream : compute_stream;
    std::optional<std::uint32_t> barrier;  // the reduction of the flag
    for (std::uint32_t k = program_.micro_batch_kernels; k < program_.kernels.size(); ++k) {
      const Kernel& kernel = program_.kernels[k];
      const bool checks = kernel.phase == models::Phase::check && kernel.gradient != models::no_gradient;
      if (program_.overflow_flag && !checks && !barrier.has_value()) barrier = start_flag(task_of_[k - 1].task);
      std::vector<std::uint32_t> after;
      if (kernel.gradient != models::no_gradient) after.push_back(allreduce_of(kernel.gradient));
      if (kernel.phase == models::Phase::update && barrier.has_value()) after.push_back(*barrier);
      // The clip's factor is in the stream of the updates: it is before them without a dependency.
      if (open_ == none || after != task(open_).after || phase_of(kernel.phase) != task(open_).purpose.phase) {
        open_block(k, stream, after);
      }
      extend_block(k);
    }
  }

  void finish() && {
    for (const models::LiveTensor& tensor : program_.tensors) {
      role_.tensors.push_back({tensor.bytes, task_of_[tensor.first_kernel], task_of_[tensor.last_kernel]});
    }
    plan_.roles.push_back(std::move(role_));
  }

 private:
  static constexpr std::uint32_t none = ~0U;

  [[nodiscard]] PlanTask& task(std::uint32_t number) { return role_.tasks[number]; }

  [[nodiscard]] std::uint32_t last_kernel_of(const Segment& segment) const {
    std::uint32_t kernel = 0;
    for (std::uint32_t g = segment.first; g <= segment.last; ++g) {
      kernel = std::max(kernel, program_.gradients[g].kernel);
    }
    return kernel;
  }

  std::uint32_t add(PlanTask task) {
    task.ordinal = ordinal_++;
    role_.tasks.push_back(std::move(task));
    return static_cast<std::uint32_t>(role_.tasks.size() - 1);
  }

  /// Begins a block with kernel k; extend_block(k) adds it.
  void open_block(std::uint32_t k, std::uint32_t stream, std::vector<std::uint32_t> after) {
    open_ = add({.work = KernelBlock{k, 0},
                 .purpose = {.phase = phase_of(program_.kernels[k].phase)},
                 .stream = stream,
                 .after = std::move(after)});
    --ordinal_;
  }

  void extend_block(std::uint32_t k) {
    KernelBlock& block = std::get<KernelBlock>(task(open_).work);
    task_of_[k] = {open_, block.count++};
    ++ordinal_;
  }

  [[nodiscard]] std::vector<std::uint32_t> tasks_of(const std::vector<std::uint32_t>& kernels) const {
    std::vector<std::uint32_t> tasks;
    for (const std::uint32_t kernel : kernels) tasks.push_back(task_of_[kernel].task);
    return tasks;
  }

  void add_communication(std::uint32_t k, const Boundaries& boundaries) {
    const Kernel& kernel = program_.kernels[k];
    const models::CommunicationWork& work = kernel.communication;
    std::vector<std::uint32_t> after = tasks_of(boundaries.waits_for[k]);
    const bool sends = work.input != models::no_tensor;
    const std::uint32_t writer = sends ? program_.tensors[work.input].writer : models::LiveTensor::none;
    if (writer != models::LiveTensor::none) after.push_back(task_of_[writer].task);
    PlanTask task{.work = HostWork{},
                  .purpose = {.phase = phase_of(kernel.phase)},
                  .stream = communication_stream,
                  .after = std::move(after)};
    if (work.kind == OperatorKind::send || work.kind == OperatorKind::receive) {
      const auto message = static_cast<std::uint32_t>(plan_.messages.size());
      const Operation operation{.ranks = 2,
                                .type = work.dtype,
                                .collective = Collective::send_recv,
                                .in_place = false,
                                .counts = BlockCounts::of_pairs(2, {0, work.elements, 0, 0})};
      plan_.messages.push_back({make_schedule_({kernel.name, {0, 1}}, operation), kernel.name});
      if (work.kind == OperatorKind::send) {
        task.work = SendTask{message, work.peer.offset, work.peer.tag};
      } else {
        task.work = ReceiveTask{message, work.peer.offset, work.peer.tag};
      }
    } else {
      if (work.group.family >= options_.families.size()) {
        bad_input("communicator", "{}: there is no family {} of groups; there are {}", kernel.name, work.group.family,
                  options_.families.size());
      }
      const Collective collective = collective_of(work.kind);
      const std::uint64_t blocks =
          collective == Collective::reduce_scatter || collective == Collective::alltoall ? work.group.ranks : 1;
      const Operation operation{.ranks = work.group.ranks,
                                .elements = work.elements / blocks,
                                .type = work.dtype,
                                .collective = collective,
                                .root = work.group.root,
                                .in_place = collective == Collective::allreduce || collective == Collective::broadcast};
      task.work = CollectiveTask{add_collective(work.group.family, operation, kernel.name)};
    }
    task_of_[k] = {add(std::move(task)), 0};
    open_ = none;
  }

  std::uint32_t add_collective(std::uint32_t family, const Operation& operation, std::string name,
                               std::uint32_t segment = Purpose::none) {
    PlannedCollective collective{family, operation, {}, std::move(name), segment};
    for (const Communicator& group : plan_.families[family].groups) {
      collective.schedules.push_back(make_schedule_(group, operation));
    }
    plan_.collectives.push_back(std::move(collective));
    return static_cast<std::uint32_t>(plan_.collectives.size() - 1);
  }

  /// Adds a reduction over the replicas that waits for one task.
  std::uint32_t reduce(std::uint64_t elements, DataType type, std::string name, const Purpose& purpose,
                       std::uint32_t after) {
    const auto ranks = static_cast<Rank>(plan_.families[replicas_].groups.front().ranks.size());
    const Operation operation{.ranks = ranks, .elements = elements, .type = type};
    const std::uint32_t collective = add_collective(replicas_, operation, std::move(name), purpose.segment);
    open_ = none;
    return add(
        {.work = CollectiveTask{collective}, .purpose = purpose, .stream = communication_stream, .after = {after}});
  }

  void start_allreduce(std::size_t segment) {
    std::uint64_t elements = 0;
    for (std::uint32_t g = segments_[segment].first; g <= segments_[segment].last; ++g) {
      elements += program_.gradients[g].elements;
    }
    // The last kernel so far, which need not be one of the segment: without hcom_parallel it ends the backward pass.
    std::uint32_t last = static_cast<std::uint32_t>(role_.tasks.size()) - 1;
    while (task(last).stream != compute_stream) --last;
    allreduces_.push_back(reduce(elements, program_.gradient_type(), fmt::format("allreduce{}", segment + 1),
                                 {.phase = StepPhase::reduction, .segment = static_cast<std::uint32_t>(segment)},
                                 last));
  }

  std::uint32_t start_flag(std::uint32_t last_check) {
    return reduce(1, DataType::fp32, std::string(overflow_flag_name), {.phase = StepPhase::check}, last_check);
  }

  /// The task that reduces a gradient; without hcom_parallel the last one.
  [[nodiscard]] std::uint32_t allreduce_of(std::uint32_t gradient) const {
    if (!options_.hcom_parallel) return allreduces_.back();
    const auto holds = std::partition_point(segments_.begin(), segments_.end(),
                                            [&](const Segment& segment) { return segment.last < gradient; });
    return allreduces_[static_cast<std::size_t>(holds - segments_.begin())];
  }

  const models::Program& program_;
  const DataParallelOptions& options_;
  const std::vector<Segment>& segments_;
  const ScheduleMaker& make_schedule_;
  std::vector<TaskPart> task_of_;          // of each kernel
  std::vector<std::uint32_t> allreduces_;  // tasks
  std::uint32_t open_ = none;              // the block that kernels are added to
  std::uint32_t ordinal_ = 0;
  Role role_;
  std::uint32_t replicas_;  // family in which the gradients are reduced
  Plan& plan_;
};

}  // namespace

std::vector<ReplicaGroups> all_replicas(Rank ranks, std::vector<Segment> segments) {
  return {{std::move(segments), {{world_communicator(ranks)}}}};
}

Plan data_parallel_plan(const std::shared_ptr<const models::Program>& program, const DataParallelOptions& options,
                        const ScheduleMaker& make_schedule) {
  Plan plan;
  plan.role_of.assign(options.ranks, 0);
  plan.families = options.families;
  for (const ReplicaGroups& replicas : options.replicas) {
    RoleBuilder builder(program, options, replicas, make_schedule, plan);
    builder.add_micro_batch();
    builder.add_once_per_step();
    std::move(builder).finish();
  }
  return plan;
}

}  // namespace hcclsim::hccl
