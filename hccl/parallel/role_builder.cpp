#include "hccl/parallel/role_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

using models::Kernel;
using models::KernelClass;
using models::Launched;
using models::Phase;

}  // namespace

RoleBuilder::RoleBuilder(const StepSpec& step, const StageProgram& stage,
                         std::shared_ptr<const models::Program> program, RolePlace place,
                         const ScheduleMaker& make_schedule, Plan& plan)
    : program_(*program),
      step_(step),
      gathers_(stage.gathers),
      place_(std::move(place)),
      make_schedule_(make_schedule),
      plan_(plan),
      passes_(models::passes(program_)),
      task_of_(program_.kernels.size(), none),
      reduced_(place_.reductions.size(), none),
      gathered_(gathers_.size(), none) {
  role_.program = std::move(program);
  role_.stage = place_.stage;
  role_.streams.assign(role_stream::compression, StreamKind::communication);
  role_.streams[role_stream::compute] = StreamKind::compute;
  role_.streams[role_stream::update] = StreamKind::update;
  for (const Reduction& reduction : place_.reductions) role_.segments.push_back(reduction.segment);
  role_.gathers = gathers_;
}

std::uint32_t RoleBuilder::build() && {
  find_boundaries();
  find_uses();
  find_ready_kernels();
  start_gathers();
  if (place_.cells.empty()) {
    for (std::uint32_t micro = 0; micro < step_.shape.micro_batches; ++micro) {
      for (std::size_t pass = 0; pass < passes_.size(); ++pass) add_cell(pass, micro);
    }
  }
  for (const Cell& cell : place_.cells) {
    for (std::size_t pass = 0; pass < passes_.size(); ++pass) {
      if (passes_[pass].phase == cell.phase && passes_[pass].chunk == cell.chunk) add_cell(pass, cell.micro_batch);
    }
  }
  if (next_turn_ < place_.messages.size()) {
    internal_error("stage {}: message {} of {} is never ready", place_.stage, next_turn_, place_.messages.size());
  }
  start_reductions(none);
  add_once_per_step();
  add_closing();
  plan_.roles.push_back(std::move(role_));
  return static_cast<std::uint32_t>(plan_.roles.size() - 1);
}

/// Communication of an earlier pass is over: its first reader waited for it in the same stream.
void RoleBuilder::find_boundaries() {
  const std::uint32_t count = program_.micro_batch_kernels;
  ends_block_.assign(count, false);
  waits_for_.resize(count);
  const auto same_pass = [&](std::uint32_t one, std::uint32_t other) {
    const Kernel& a = program_.kernels[one];
    const Kernel& b = program_.kernels[other];
    return a.phase == b.phase && a.chunk == b.chunk;
  };
  const auto communicates = [&](std::uint32_t k) { return program_.kernels[k].kind == KernelClass::communication; };
  for (std::uint32_t k = 0; k < count; ++k) {
    const Kernel& kernel = program_.kernels[k];
    if (!communicates(k)) continue;
    if (kernel.communication->input != models::no_tensor) {
      const std::uint32_t writer = program_.tensors[kernel.communication->input].writer;
      if (writer != models::LiveTensor::none) ends_block_[writer] = true;
    }
    // A parameter, or its gradient, is a message without a tensor: what follows it waits for it.
    const bool comes =
        kernel.launched != Launched::always && kernel.communication->kind == models::OperatorKind::receive;
    if (comes && k + 1 < count && same_pass(k, k + 1)) waits_for_[k + 1].push_back(k);
  }
  for (const models::TensorRead& read : program_.reads) {
    const std::uint32_t writer = program_.tensors[read.tensor].writer;
    if (writer == models::LiveTensor::none || !communicates(writer) || !same_pass(writer, read.kernel)) continue;
    waits_for_[read.kernel].push_back(writer);
  }
}

void RoleBuilder::find_uses() {
  uses_.resize(passes_.size());
  std::vector<std::uint32_t> gather_of(program_.parameters.size(), none);
  for (std::uint32_t number = 0; number < gathers_.size(); ++number) {
    for (const std::uint32_t parameter : gathers_[number].parameters) gather_of[parameter] = number;
  }
  std::vector<std::size_t> seen(gathers_.size(), passes_.size());  // the latest pass that reads it
  std::size_t pass = 0;
  for (const models::ParameterUse& use : program_.uses) {
    while (use.kernel >= passes_[pass].first + passes_[pass].count) ++pass;
    const std::uint32_t gather = gather_of[use.parameter];
    if (gather == none || seen[gather] == pass) continue;
    const bool is_first = seen[gather] == passes_.size();
    seen[gather] = pass;
    if (is_first || gathers_[gather].each_use) uses_[pass].push_back({use.kernel, gather});
  }
}

void RoleBuilder::find_ready_kernels() {
  reduction_of_.assign(program_.gradients.size(), none);
  for (std::uint32_t number = 0; number < place_.reductions.size(); ++number) {
    const Segment& segment = place_.reductions[number].segment;
    std::uint32_t kernel = ready_.empty() ? 0 : ready_.back();
    for (std::uint32_t g = segment.first; g <= segment.last; ++g) {
      kernel = std::max(kernel, program_.gradients[g].kernel);
      reduction_of_[g] = number;
    }
    ready_.push_back(kernel);
  }
}

bool RoleBuilder::is_launched(const Kernel& kernel) const {
  if (kernel.launched == Launched::before_all) return false;
  if (kernel.launched == Launched::with_first) return micro_batch_ == 0;
  return kernel.launched == Launched::always || micro_batch_ + 1 == step_.shape.micro_batches;
}

void RoleBuilder::add_cell(std::size_t pass, std::uint32_t micro_batch) {
  micro_batch_ = micro_batch;
  pass_ = pass;
  open_ = none;
  next_use_ = next_gather_ = 0;
  take_turns();
  const std::uint32_t end = passes_[pass].first + passes_[pass].count;
  for (std::uint32_t k = passes_[pass].first; k < end; ++k) {
    if (!is_launched(program_.kernels[k])) continue;
    if (program_.kernels[k].kind == KernelClass::communication) {
      add_communication(k);
    } else if (program_.kernels[k].kind == KernelClass::host) {
      add_host_work(k, needed_by(k));
    } else {
      add_kernel(k, needed_by(k));
    }
    if (step_.hcom_parallel) start_reductions(k);
  }
  if (!step_.hcom_parallel && end > 0) start_reductions(end - 1);
}

void RoleBuilder::add_kernel(std::uint32_t k, const Tasks& after) {
  const Kernel& kernel = program_.kernels[k];
  if (!after.empty() || open_ == none || phase_of(kernel.phase) != task(open_).purpose.phase) {
    open_block(k, role_stream::compute, after);
  }
  extend_block(k);
  if (ends_block_[k]) open_ = none;
}

RoleBuilder::Tasks RoleBuilder::needed_by(std::uint32_t k) {
  Tasks tasks;
  for (const std::uint32_t before : waits_for_[k]) {
    if (!is_launched(program_.kernels[before])) continue;
    const auto received = received_.find({before, micro_batch_});
    const std::uint32_t number = received == received_.end() ? task_of_[before] : received->second;
    if (number == none) internal_error("{} waits for a message that comes later", program_.kernels[k].name);
    tasks.push_back(number);
  }
  wait_for_gathers(k, tasks);
  if (first_wait_ != none) tasks.push_back(std::exchange(first_wait_, none));
  return tasks;
}

/// Those once per step; of several chunks the first one last, so that nothing of the step precedes the others.
void RoleBuilder::start_gathers() {
  std::vector<std::uint32_t> chunk_of(gathers_.size(), 0);
  for (std::size_t pass = 0; pass < passes_.size(); ++pass) {
    for (const FirstUse& use : uses_[pass]) chunk_of[use.gather] = passes_[pass].chunk;
  }
  for (const bool first_chunk : {false, true}) {
    for (std::uint32_t number = 0; number < gathers_.size(); ++number) {
      if (gathers_[number].each_use || (chunk_of[number] == 0) != first_chunk) continue;
      start_gather(number, {});
      if (!first_chunk) first_wait_ = gathered_[number];
    }
  }
}

std::uint32_t RoleBuilder::start_gather(std::uint32_t number, Tasks after) {
  if (gather_collectives_.empty()) gather_collectives_.assign(gathers_.size(), none);
  const std::vector<std::uint32_t>& parameters = gathers_[number].parameters;
  if (gather_collectives_[number] == none) {
    const std::uint32_t family = place_.copies[gathers_[number].copies].shards;
    Operation operation{.ranks = group_size(family),
                        .type = program_.parameters[parameters.front()].used_as,
                        .collective = Collective::allgather,
                        .in_place = false};
    for (const std::uint32_t parameter : parameters) operation.elements += program_.parameters[parameter].shard();
    gather_collectives_[number] = add_collective(family, operation, fmt::format("allgather{}", number + 1));
  }
  open_ = none;
  gathered_[number] = add({.work = CollectiveTask{gather_collectives_[number]},
                           .purpose = {.phase = StepPhase::gather,
                                       .stage = place_.stage,
                                       .chunk = passes_[pass_].chunk,
                                       .micro_batch = micro_batch_,
                                       .segment = number},
                           .stream = role_stream::gathers,
                           .after = std::move(after)});
  return gathered_[number];
}

/// Weights that are gathered for every use come one layer ahead: when the kernels before those that read the layer
/// before have ended.
void RoleBuilder::wait_for_gathers(std::uint32_t k, Tasks& after) {
  const std::vector<FirstUse>& uses = uses_[pass_];
  const auto fetch = [&](std::uint32_t behind) {
    const FirstUse& use = uses[next_gather_++];
    if (!gathers_[use.gather].each_use) return;
    start_gather(use.gather, behind == none ? Tasks{} : Tasks{behind});
  };
  bool waits = false;
  for (; next_use_ < uses.size() && uses[next_use_].kernel <= k; ++next_use_) {
    const std::uint32_t gather = uses[next_use_].gather;
    if (!gathers_[gather].each_use && micro_batch_ > 0) continue;
    if (next_gather_ <= next_use_) fetch(compute_before_);
    after.push_back(gathered_[gather]);
    waits = true;
  }
  if (waits && next_gather_ == next_use_ && next_gather_ < uses.size()) fetch(last_compute_);
}

void RoleBuilder::start_reductions(std::uint32_t k) {
  const bool last = k == none || micro_batch_ + 1 == step_.shape.micro_batches;
  if (k != none) {
    const std::uint32_t first = step_.hcom_parallel ? k : passes_[pass_].first;
    const auto begin = std::ranges::lower_bound(ready_, first);
    const auto end = std::ranges::upper_bound(begin, ready_.end(), k);
    for (auto ready = begin; ready < end; ++ready) {
      const auto number = static_cast<std::size_t>(ready - ready_.begin());
      if (place_.reductions[number].each_micro_batch) start_reduction(number);
    }
  }
  if (!last || (k != none && !step_.hcom_parallel)) return;
  for (; next_reduction_ < ready_.size() && (k == none || ready_[next_reduction_] <= k); ++next_reduction_) {
    if (!place_.reductions[next_reduction_].each_micro_batch) start_reduction(next_reduction_);
  }
}

void RoleBuilder::start_reduction(std::size_t number) {
  if (reduction_collectives_.empty()) {
    reduction_collectives_.assign(place_.reductions.size(), none);
    mirror_collectives_ = reduction_collectives_;
  }
  const Reduction& reduction = place_.reductions[number];
  const auto segment = static_cast<std::uint32_t>(number);
  const Copies& copies = place_.copies[reduction.copies];
  const bool mirrored = reduction.scattered && copies.mirrors.has_value();
  const bool complete = !reduction.each_micro_batch || micro_batch_ + 1 == step_.shape.micro_batches;
  if (reduction_collectives_[number] == none) {
    const std::uint32_t family = reduction.scattered ? copies.shards : copies.all;
    Operation operation{.ranks = group_size(family), .type = program_.gradients[reduction.segment.first].dtype};
    for (std::uint32_t g = reduction.segment.first; g <= reduction.segment.last; ++g) {
      const models::Gradient& gradient = program_.gradients[g];
      if (gradient.dtype != operation.type) internal_error("segment {} has gradients of several types", number);
      operation.elements += reduction.scattered ? program_.parameters[gradient.parameter].shard() : gradient.elements;
    }
    if (step_.pad_segments && !reduction.scattered) {
      operation.elements = padded_elements(operation.elements, operation.ranks);
    }
    if (mirrored) {
      Operation mirror = operation;
      mirror.ranks = group_size(*copies.mirrors);
      if (step_.pad_segments) mirror.elements = padded_elements(mirror.elements, mirror.ranks);
      mirror_collectives_[number] =
          add_collective(*copies.mirrors, mirror, fmt::format("mirror{}", number + 1), segment);
    }
    if (reduction.scattered) {
      operation.collective = Collective::reduce_scatter;
      operation.in_place = false;
    }
    reduction_collectives_[number] =
        add_collective(family, operation,
                       fmt::format("{}{}", reduction.scattered ? "reducescatter" : "allreduce", number + 1), segment);
  }
  const Purpose purpose{
      .phase = StepPhase::reduction, .stage = place_.stage, .micro_batch = micro_batch_, .segment = segment};
  // It waits for the last kernel so far, which need not be one of the segment: without overlap it ends the pass.
  open_ = none;
  last_reduction_ = add({.work = CollectiveTask{reduction_collectives_[number]},
                         .purpose = purpose,
                         .stream = role_stream::communication,
                         .after = {last_compute_}});
  // Parts are summed over their mirrors once per step, when those of all micro-batches are added up.
  if (mirrored && complete) {
    last_reduction_ = add({.work = CollectiveTask{mirror_collectives_[number]},
                           .purpose = purpose,
                           .stream = role_stream::communication});
  }
  reduced_[number] = last_reduction_;
}

std::uint32_t RoleBuilder::start_scalar(std::string_view name, std::uint32_t after) {
  open_ = none;
  const Operation operation{.ranks = group_size(place_.everyone), .elements = 1, .type = DataType::fp32};
  const std::uint32_t collective = add_collective(place_.everyone, operation, std::string(name));
  return add({.work = CollectiveTask{collective},
              .purpose = {.phase = StepPhase::check, .stage = place_.stage},
              .stream = role_stream::communication,
              .after = {after}});
}

/// What a gradient is complete with: its reduction, or the last one if they come in series behind the backward pass.
/// One that nobody else contributes to is in the stream that has computed it, if updates are in the same.
RoleBuilder::Tasks RoleBuilder::complete_gradient(std::uint32_t gradient) const {
  const std::uint32_t reduction = reduction_of_[gradient];
  if (!step_.hcom_parallel && last_reduction_ != none) return {last_reduction_};
  if (reduction != none) return {reduced_[reduction]};
  return step_.has_update_stream() ? Tasks{last_compute_} : Tasks{};
}

/// Checks of all gradients, then what updates wait for beside their reductions; updates.
void RoleBuilder::add_once_per_step() {
  const std::uint32_t stream = step_.has_update_stream() ? role_stream::update : role_stream::compute;
  std::optional<std::uint32_t> flag;
  Tasks checked_by_host;
  std::uint32_t clip = none;
  for (std::uint32_t k = program_.micro_batch_kernels; k < program_.kernels.size(); ++k) {
    const Kernel& kernel = program_.kernels[k];
    const bool checks = kernel.phase == Phase::check && kernel.gradient != models::no_gradient;
    const bool clips = kernel.phase == Phase::check && !checks;
    if (program_.overflow_flag && !checks && !flag.has_value()) {
      flag = start_scalar(overflow_flag_name, task_of_[k - 1]);
      if (!checked_by_host.empty()) task(*flag).after = {last_compute_, checked_by_host.front()};
    }
    Tasks after;
    if (kernel.gradient != models::no_gradient) after = complete_gradient(kernel.gradient);
    if (clips && place_.partial_norm) after.push_back(start_scalar("global_norm", task_of_[k - 1]));
    if (kernel.phase == Phase::update && flag.has_value()) after.push_back(*flag);
    if (clips) after.insert(after.end(), checked_by_host.begin(), checked_by_host.end());
    if (kernel.kind == KernelClass::host) {
      if (kernel.phase == Phase::update && clip != none) after.push_back(clip);
      const std::uint32_t work = add_host_work(k, std::move(after));
      if (checks) checked_by_host = {work};
      continue;
    }
    // The clip's factor is in the stream of the updates: it is before them without a dependency.
    if (open_ == none || after != task(open_).after || phase_of(kernel.phase) != task(open_).purpose.phase) {
      open_block(k, stream, after);
    }
    extend_block(k);
    if (clips) clip = task_of_[k];
  }
}

/// One behind the other, when the rank's last kernel has ended.
void RoleBuilder::add_closing() {
  Tasks after{last_compute_};
  for (std::uint32_t t = 0; t < role_.tasks.size(); ++t) {
    if (role_.tasks[t].stream == role_stream::update) after = {last_compute_, t};
  }
  for (const ClosingCollective& closing : place_.closing) {
    const std::uint32_t collective = add_collective(closing.family, closing.operation, closing.name);
    open_ = none;
    add({.work = CollectiveTask{collective},
         .purpose = {.phase = closing.phase, .stage = place_.stage},
         .stream = role_stream::communication,
         .after = std::exchange(after, {})});
  }
}

std::uint32_t RoleBuilder::add_collective(std::uint32_t family, const Operation& operation, std::string name,
                                          std::uint32_t segment) {
  // Roles whose ranks meet in a group share its collectives.
  for (std::uint32_t number = 0; number < plan_.collectives.size(); ++number) {
    const PlannedCollective& there = plan_.collectives[number];
    if (there.family == family && there.name == name && there.operation == operation) return number;
  }
  PlannedCollective collective{family, operation, {}, std::move(name), segment};
  for (const Communicator& group : plan_.families[family].groups) {
    collective.schedules.push_back(make_schedule_(group, operation));
  }
  plan_.collectives.push_back(std::move(collective));
  return static_cast<std::uint32_t>(plan_.collectives.size() - 1);
}

Rank RoleBuilder::group_size(std::uint32_t family) const {
  return static_cast<Rank>(plan_.families[family].groups.front().ranks.size());
}

Purpose RoleBuilder::purpose_of(const Kernel& kernel) const {
  return {.phase = phase_of(kernel.phase), .stage = place_.stage, .chunk = kernel.chunk, .micro_batch = micro_batch_};
}

std::uint32_t RoleBuilder::add(PlanTask task) {
  task.ordinal = ordinal_++;
  const auto number = static_cast<std::uint32_t>(role_.tasks.size());
  if (task.stream == role_stream::compute) {
    compute_before_ = last_compute_;
    last_compute_ = number;
  }
  role_.tasks.push_back(std::move(task));
  return number;
}

std::uint32_t RoleBuilder::host_stream(StreamKind kind) {
  const auto [found, is_new] = host_streams_.try_emplace(kind, static_cast<std::uint32_t>(role_.streams.size()));
  if (is_new) role_.streams.push_back(kind);
  return found->second;
}

std::uint32_t RoleBuilder::add_host_work(std::uint32_t k, Tasks after) {
  open_ = none;
  task_of_[k] = add({.work = HostWork{program_.kernels[k].duration},
                     .purpose = purpose_of(program_.kernels[k]),
                     .stream = host_stream(StreamKind::host),
                     .after = std::move(after),
                     .kernel = k});
  return task_of_[k];
}

/// Begins a block with kernel k; extend_block(k) adds it.
void RoleBuilder::open_block(std::uint32_t k, std::uint32_t stream, Tasks after) {
  open_ = add({.work = KernelBlock{k, 0},
               .purpose = purpose_of(program_.kernels[k]),
               .stream = stream,
               .after = std::move(after)});
  --ordinal_;
}

void RoleBuilder::extend_block(std::uint32_t k) {
  auto& block = std::get<KernelBlock>(task(open_).work);
  // A kernel that is not launched with every micro-batch may lie between two that are.
  if (block.first + block.count != k) {
    open_block(k, task(open_).stream, {});
    std::get<KernelBlock>(task(open_).work).count = 1;
  } else {
    ++block.count;
  }
  task_of_[k] = open_;
  ++ordinal_;
}

}  // namespace hcclsim::hccl
