#include "hccl/parallel/compressed_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "device/kernel_cost.hpp"
#include "hccl/compression/hook_steps.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t no_task = ~0U;

/// Short names of collectives: "allreduce2:p".
std::string_view letter_of(HookAction action) {
  switch (action) {
    case HookAction::sum_direct:
      return "direct";
    case HookAction::sum_p:
      return "p";
    case HookAction::sum_q:
      return "q";
    case HookAction::gather_values:
      return "values";
    case HookAction::gather_places:
      return "places";
    default:
      return "narrow";
  }
}

bool is_reduction(const PlanTask& task) {
  return task.purpose.phase == StepPhase::reduction && std::holds_alternative<CollectiveTask>(task.work);
}

/// Numbers of the hooks' collectives in the Plan, by family and name: roles whose ranks meet in a group share them.
using HookCollectives = std::map<std::pair<std::uint32_t, std::string>, std::uint32_t>;

/// Rewrites one role.
class RoleCompression {
 public:
  RoleCompression(Plan& plan, Role& role, const CompressionPlan& options, const device::Soc& soc,
                  const ScheduleMaker& make_schedule, HookCollectives& collectives)
      : collectives_(collectives),
        plan_(plan),
        role_(role),
        options_(options),
        soc_(soc),
        make_schedule_(make_schedule),
        program_(*role.program),
        hooks_(role.segments.size(), no_task),
        segment_of_(program_.gradients.size(), 0) {
    for (std::uint32_t number = 0; number < role.segments.size(); ++number) {
      const Segment& segment = role.segments[number];
      for (std::uint32_t g = segment.first; g <= segment.last; ++g) segment_of_[g] = number;
    }
    for (const PlanTask& task : role.tasks) ordinal_ = std::max(ordinal_, task.ordinal + parts_of(task));
  }

  void run() {
    const std::uint64_t start = options_.settings.start;
    begin_ = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(start - std::min<std::uint64_t>(start, options_.steps_done), StepRange::no_end));
    role_.streams.resize(role_stream::compression + role_.segments.size(), StreamKind::compute);
    for (const PlanTask& planned : role_.tasks) {
      PlanTask task = planned;
      task.after = waits_of(task);
      place_of_.push_back(static_cast<std::uint32_t>(tasks_.size()));
      if (!is_reduction(task)) {
        tasks_.push_back(std::move(task));
        continue;
      }
      if (task.purpose.segment >= hooks_.size() || hooks_[task.purpose.segment] != no_task) {
        bad_input("unsupported", "--compress: gradients that are reduced with every micro-batch are not compressed");
      }
      PlanTask plain = task;
      plain.steps.end = begin_;
      tasks_.push_back(std::move(plain));
      add_hook(task);
    }
    role_.tasks = std::move(tasks_);
    role_.program = std::make_shared<const models::Program>(std::move(program_));
  }

 private:
  static std::uint32_t parts_of(const PlanTask& task) {
    const auto* block = std::get_if<KernelBlock>(&task.work);
    return block == nullptr ? 1 : block->count;
  }

  /// What a task of the role waits for, by the new numbers.
  [[nodiscard]] std::vector<std::uint32_t> waits_of(const PlanTask& task) const {
    std::vector<std::uint32_t> after;
    bool reductions = false;
    for (const std::uint32_t before : task.after) {
      after.push_back(place_of_[before]);
      reductions = reductions || is_reduction(role_.tasks[before]);
    }
    if (!reductions) return after;
    for (const std::uint32_t segment : segments_read(task)) {
      if (hooks_[segment] != no_task) after.push_back(hooks_[segment]);
    }
    return after;
  }

  /// Segments of the gradients that a block checks or applies; of other tasks all, as for reductions in one stream.
  [[nodiscard]] std::vector<std::uint32_t> segments_read(const PlanTask& task) const {
    std::vector<bool> read(hooks_.size(), false);
    const auto* block = std::get_if<KernelBlock>(&task.work);
    for (std::uint32_t k = 0; block != nullptr && k < block->count; ++k) {
      const std::uint32_t gradient = program_.kernels[block->first + k].gradient;
      if (gradient != models::no_gradient) read[segment_of_[gradient]] = true;
    }
    if (block == nullptr) read.assign(hooks_.size(), true);
    std::vector<std::uint32_t> segments;
    for (std::uint32_t segment = 0; segment < read.size(); ++segment) {
      if (read[segment]) segments.push_back(segment);
    }
    return segments;
  }

  void add_hook(const PlanTask& reduction) {
    const std::uint32_t number = reduction.purpose.segment;
    const PlannedCollective plain = plan_.collectives[std::get<CollectiveTask>(reduction.work).collective];
    const std::vector<BucketTensor> tensors = bucket_tensors(program_, role_.segments[number]);
    const Bucket bucket = make_bucket(options_.settings, tensors);
    const DataType type = program_.gradient_type();
    std::vector<std::uint32_t> after = reduction.after;
    std::uint32_t open = no_task;  // the block that kernels are added to
    for (const HookAction action : hook_steps(options_.settings, bucket)) {
      const auto operation = collective_of(action, options_.settings, bucket, plain.operation.ranks, type);
      PlanTask task{.work = HostWork{}, .purpose = reduction.purpose, .after = {}, .ordinal = ordinal_};
      task.purpose.action = action;
      task.steps.begin = begin_;
      if (operation.has_value()) {
        open = no_task;
        task.work = CollectiveTask{add_collective(plain, *operation, letter_of(action))};
        task.stream = role_stream::communication;
        task.after = std::exchange(after, {static_cast<std::uint32_t>(tasks_.size())});
        ++ordinal_;
        tasks_.push_back(std::move(task));
        continue;
      }
      const std::uint32_t kernels =
          add_kernels(kernels_of(action, options_.settings, bucket, plain.operation.ranks, type), number);
      if (kernels == 0) continue;
      const auto first = static_cast<std::uint32_t>(program_.kernels.size() - kernels);
      if (open == no_task) {
        open = static_cast<std::uint32_t>(tasks_.size());
        task.work = KernelBlock{first, 0};
        task.stream = role_stream::compression + number;
        task.after = std::exchange(after, {open});
        tasks_.push_back(std::move(task));
      }
      std::get<KernelBlock>(tasks_[open].work).count += kernels;
      ordinal_ += kernels;
    }
    hooks_[number] = static_cast<std::uint32_t>(tasks_.size() - 1);
  }

  std::uint32_t add_kernels(std::vector<models::Kernel> kernels, std::uint32_t segment) {
    for (models::Kernel& kernel : kernels) {
      kernel.name = hook_kernel_name(segment, kernel.name);
      kernel.duration = device::kernel_time(kernel, soc_);
      program_.kernels.push_back(std::move(kernel));
    }
    return static_cast<std::uint32_t>(kernels.size());
  }

  std::uint32_t add_collective(const PlannedCollective& plain, const Operation& operation, std::string_view letter) {
    const std::string_view what = operation.collective == Collective::allgather ? "allgather" : "allreduce";
    PlannedCollective collective{.family = plain.family,
                                 .operation = operation,
                                 .schedules = {},
                                 .name = fmt::format("{}{}:{}", what, plain.segment + 1, letter),
                                 .segment = plain.segment};
    const auto next = static_cast<std::uint32_t>(plan_.collectives.size());
    const auto [known, is_new] = collectives_.try_emplace({plain.family, collective.name}, next);
    if (!is_new) return known->second;
    for (const Communicator& group : plan_.families[plain.family].groups) {
      collective.schedules.push_back(make_schedule_(group, operation));
    }
    plan_.collectives.push_back(std::move(collective));
    return next;
  }

  HookCollectives& collectives_;
  Plan& plan_;
  Role& role_;
  const CompressionPlan& options_;
  const device::Soc& soc_;
  const ScheduleMaker& make_schedule_;
  models::Program program_;
  std::uint32_t begin_ = 0;              // the first compressed step
  std::vector<PlanTask> tasks_;          // new
  std::vector<std::uint32_t> place_of_;  // of the old tasks
  std::vector<std::uint32_t> hooks_;     // of segments: the last task of the hook
  std::vector<std::uint32_t> segment_of_;
  std::uint32_t ordinal_ = 0;
};

/// A hook needs whole gradients on every rank.
void require_whole(const Plan& plan, const Role& role) {
  for (const PlanTask& task : role.tasks) {
    if (!is_reduction(task)) continue;
    const PlannedCollective& reduction = plan.collectives[std::get<CollectiveTask>(task.work).collective];
    if (reduction.operation.collective == Collective::allreduce) continue;
    bad_input("unsupported",
              "gradients of {} are reduced and scattered, so that each rank gets the sum of its parts alone, and a "
              "compression hook works on whole gradients; let ranks keep whole parameters, or do not compress",
              role.program->title);
  }
}

}  // namespace

std::vector<BucketTensor> bucket_tensors(const models::Program& program, const Segment& segment) {
  std::vector<BucketTensor> tensors;
  for (std::uint32_t g = segment.first; g <= segment.last; ++g) {
    const models::Gradient& gradient = program.gradients[g];
    tensors.push_back({gradient.elements, gradient.rows > 0 ? gradient.rows : gradient.elements});
  }
  return tensors;
}

void compress(Plan& plan, const CompressionPlan& options, const device::Soc& soc, const ScheduleMaker& make_schedule) {
  HookCollectives collectives;
  for (Role& role : plan.roles) {
    if (role.segments.empty()) continue;
    require_whole(plan, role);
    const auto& gradients = role.program->gradients;
    const bool shapes = std::ranges::any_of(gradients, [](const auto& gradient) { return gradient.rows > 0; });
    if (options.settings.kind == CompressionKind::powersgd && !shapes) {
      bad_input("unsupported",
                "--compress powersgd: {} has no parameter with a known shape of two or more dimensions; "
                "batched-powersgd needs none",
                role.program->title);
    }
    if (role.program->overflow_flag) {
      bad_input("unsupported",
                "--compress does not go with a dynamic loss scale: a hook is not told which steps overflow; give a "
                "static one");
    }
    RoleCompression(plan, role, options, soc, make_schedule, collectives).run();
  }
  plan.compression = options.settings;
}

Plan uncompressed(const Plan& plan) {
  Plan plain = plan;
  for (Role& role : plain.roles) {
    for (PlanTask& task : role.tasks) {
      if (task.purpose.action.has_value()) {
        task.steps.end = 0;
      } else {
        task.steps = {};
      }
    }
  }
  plain.compression.reset();
  return plan_of_step(plain, 0);
}

HookMemory compression_memory(const CompressionSettings& settings, const models::Program& program,
                              const std::vector<Segment>& segments, Rank ranks) {
  HookMemory sum;
  for (const Segment& segment : segments) {
    const Bucket bucket = make_bucket(settings, bucket_tensors(program, segment));
    const HookMemory memory = hook_memory(settings, bucket, ranks, program.gradient_type());
    sum.errors += memory.errors;
    sum.copies += memory.copies;
    sum.factors += memory.factors;
    sum.buffers += memory.buffers;
  }
  return sum;
}

CompressedElements compressed_elements(const CompressionSettings& settings, const models::Program& program,
                                       const std::vector<Segment>& segments) {
  CompressedElements sum;
  const DataType type = program.gradient_type();
  for (const Segment& segment : segments) {
    const Bucket bucket = make_bucket(settings, bucket_tensors(program, segment));
    sum.before += bucket.elements;
    sum.after += bucket.sent();
    sum.bytes_before += bucket.elements * size_of(type);
    for (const HookAction action : hook_steps(settings, bucket)) {
      const auto operation = collective_of(action, settings, bucket, 1, type);
      if (operation.has_value()) sum.bytes_after += operation->elements * size_of(operation->type);
    }
  }
  return sum;
}

}  // namespace hcclsim::hccl
