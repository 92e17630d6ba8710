#include "hccl/parallel/parallel_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "hccl/parallel/pipeline/message_order.hpp"

namespace hcclsim::hccl {
namespace {

/// Every `distance`-th member of each group, `size` of them at a time: of members 0 … 5 with size 3 and distance 2
/// those are 0, 2, 4 and 1, 3, 5.
DeviceGroups parts_of(const DeviceGroups& groups, std::size_t size, std::size_t distance) {
  DeviceGroups parts;
  for (const std::vector<Rank>& group : groups) {
    for (std::size_t block = 0; block < group.size(); block += size * distance) {
      for (std::size_t first = block; first < block + distance; ++first) {
        std::vector<Rank>& part = parts.emplace_back();
        for (std::size_t member = 0; member < size; ++member) part.push_back(group[first + member * distance]);
      }
    }
  }
  return parts;
}

std::uint32_t add_family(Plan& plan, GroupFamily family) {
  plan.families.push_back(std::move(family));
  return static_cast<std::uint32_t>(plan.families.size() - 1);
}

/// All devices of a stage are one group.
DeviceGroups replicas_of(Rank devices) {
  DeviceGroups groups(1);
  for (Rank device = 0; device < devices; ++device) groups.front().push_back(device);
  return groups;
}

/// The families of the Plan that the devices of a stage meet in; equal ones are one.
class StageFamilies {
 public:
  StageFamilies(Plan& plan, std::uint32_t stage, Rank devices) : plan_(plan), stage_(stage), devices_(devices) {}

  std::uint32_t add(const DeviceGroups& groups, std::string_view what) {
    const auto known = std::ranges::find(known_, groups, &std::pair<DeviceGroups, std::uint32_t>::first);
    if (known != known_.end()) return known->second;
    GroupFamily family;
    for (const std::vector<Rank>& group : groups) {
      Communicator& members = family.groups.emplace_back();
      members.name = fmt::format("stage{}_{}{}", stage_, what, family.groups.size() - 1);
      for (const Rank device : group) members.ranks.push_back(stage_ * devices_ + device);
    }
    return known_.emplace_back(groups, add_family(plan_, std::move(family))).second;
  }

  /// Groups that a parameter's copies are in, cut into those that share it.
  Copies add_copies(const DeviceGroups& groups, Rank shard_ranks, const std::string& suffix) {
    Copies copies;
    copies.all = copies.shards = add(groups, "replicas" + suffix);
    const auto ranks = static_cast<Rank>(groups.front().size());
    if (shard_ranks <= 1 || shard_ranks >= ranks || ranks % shard_ranks != 0) return copies;
    copies.shards = add(parts_of(groups, shard_ranks, 1), "shards" + suffix);
    copies.mirrors = add(parts_of(groups, ranks / shard_ranks, shard_ranks), "mirrors" + suffix);
    return copies;
  }

 private:
  Plan& plan_;
  std::uint32_t stage_;
  Rank devices_;
  std::vector<std::pair<DeviceGroups, std::uint32_t>> known_;
};

/// Puts the families of a stage into the Plan and tells the role their numbers there.
void add_families(const StageProgram& stage, const ParallelOptions& options, Rank devices, Plan& plan,
                  RoleOptions& role) {
  StageFamilies families(plan, role.stage, devices);
  if (stage.families.empty()) {
    role.copies = {families.add_copies(replicas_of(devices), options.shard_ranks, "")};
    return;
  }
  std::vector<bool> of_parameters(stage.families.size(), false);
  for (const Reduction& reduction : stage.reductions) of_parameters.at(reduction.copies) = true;
  for (const WeightGather& gather : stage.gathers) of_parameters.at(gather.copies) = true;
  role.copies.resize(stage.families.size());
  for (std::size_t number = 0; number < stage.families.size(); ++number) {
    const DeviceGroups& groups = stage.families[number];
    const std::string suffix = fmt::format("{}_", number);
    role.families.push_back(families.add(groups, "family" + suffix));
    if (of_parameters[number]) role.copies[number] = families.add_copies(groups, options.shard_ranks, suffix);
  }
}

/// The sum over the stages, of which all but the last have zeros: a group for each place in a stage.
std::vector<ClosingCollective> shared_results(const ParallelOptions& options, Rank replicas, Plan& plan) {
  std::vector<ClosingCollective> results;
  if (options.results.empty() || options.shape.stages == 1) return results;
  GroupFamily places;
  for (Rank place = 0; place < replicas; ++place) {
    Communicator group{fmt::format("place{}", place), {}};
    for (std::uint32_t stage = 0; stage < options.shape.stages; ++stage) {
      group.ranks.push_back(stage * replicas + place);
    }
    places.groups.push_back(std::move(group));
  }
  const std::uint32_t family = add_family(plan, std::move(places));
  for (std::size_t i = 0; i < options.results.size(); ++i) {
    const Operation operation{
        .ranks = options.shape.stages, .elements = options.results[i], .type = options.result_type};
    results.push_back({family, operation, fmt::format("result{}", i + 1), StepPhase::result});
  }
  return results;
}

/// The program of a rank that updates the parameters with numbers rank, rank + ranks, …
std::shared_ptr<const models::Program> dealt_program(const models::Program& program, Rank rank, Rank ranks) {
  auto dealt = std::make_shared<models::Program>(program);
  std::erase_if(dealt->kernels, [&](const models::Kernel& kernel) {
    return kernel.owners && program.gradients[kernel.gradient].parameter % ranks != rank;
  });
  return dealt;
}

/// One broadcast after the other, each of all that a rank has updated.
std::vector<ClosingCollective> broadcasts_of(const models::Program& program, std::uint32_t family, Rank ranks,
                                             DataType type) {
  std::vector<ClosingCollective> broadcasts;
  for (Rank root = 0; root < ranks; ++root) {
    Operation operation{.ranks = ranks, .type = type, .collective = Collective::broadcast, .root = root};
    for (std::size_t index = root; index < program.parameters.size(); index += ranks) {
      operation.elements += program.parameters[index].elements;
    }
    broadcasts.push_back({family, operation, fmt::format("broadcast{}", root + 1)});
  }
  return broadcasts;
}

/// Parameters travel together as these gathers have them.
FusionRule rule_of_gathers(const std::vector<WeightGather>& gathers, std::size_t parameters) {
  FusionRule rule{.mode = FusionMode::id, .ids = std::vector<std::uint32_t>(parameters, 0)};
  std::uint32_t id = 0;
  for (const WeightGather& gather : gathers) {
    ++id;
    for (const std::uint32_t parameter : gather.parameters) rule.ids[parameter] = id;
  }
  return rule;
}

/// The chunk of the first kernel that reads each parameter.
std::vector<std::uint32_t> reading_chunks(const models::Program& program) {
  std::vector<std::uint32_t> chunks(program.parameters.size(), 0);
  for (auto use = program.uses.rbegin(); use != program.uses.rend(); ++use) {
    chunks[use->parameter] = program.kernels[use->kernel].chunk;
  }
  return chunks;
}

bool checks_all(const models::Program& program) {
  return program.overflow_flag || std::ranges::any_of(program.once_per_step(), [](const models::Kernel& kernel) {
           return kernel.phase == models::Phase::check;
         });
}

}  // namespace

Plan parallel_plan(const std::vector<StageProgram>& stages, const ParallelOptions& options,
                   const ScheduleMaker& make_schedule) {
  const Rank replicas = options.ranks / options.shape.stages;
  Plan plan;
  for (Rank rank = 0; rank < options.ranks; ++rank) plan.role_of.push_back(rank / replicas);
  const bool cut = std::ranges::any_of(stages, [](const StageProgram& stage) { return !stage.families.empty(); });
  const bool partial = options.shape.stages > 1 || options.shard_ranks > 1 || cut;
  std::optional<std::uint32_t> everyone;
  if (checks_all(*stages.front().program) && (options.shape.stages > 1 || cut)) {
    everyone = add_family(plan, {{world_communicator(options.ranks)}});
  }
  const std::vector<ClosingCollective> results = shared_results(options, replicas, plan);
  std::vector<const models::Program*> programs;
  for (const StageProgram& stage : stages) programs.push_back(stage.program.get());
  std::vector<std::vector<MessageTurn>> messages(stages.size());
  if (options.shape.stages > 1) messages = message_order(programs, options.shape, replicas);
  for (std::uint32_t stage = 0; stage < stages.size(); ++stage) {
    RoleOptions role{.stage = stage,
                     .micro_batches = options.shape.micro_batches,
                     .cells = options.shape.stages > 1 ? cells_of_stage(options.shape, stage) : std::vector<Cell>{},
                     .messages = std::move(messages[stage]),
                     .reductions = stages[stage].reductions,
                     .gathers = stages[stage].gathers,
                     .closing = results,
                     .overlap = options.overlap,
                     .pad_segments = options.pad_segments,
                     .update_stream = options.update_stream,
                     .partial_norm = partial};
    add_families(stages[stage], options, replicas, plan, role);
    role.everyone = everyone.value_or(role.copies.front().all);
    if (options.dealt.has_value() && replicas > 1) {
      const models::Program& program = *stages[stage].program;
      role.closing = broadcasts_of(program, role.copies.front().all, replicas, *options.dealt);
      for (Rank rank = 0; rank < replicas; ++rank) {
        plan.role_of[stage * replicas + rank] = static_cast<std::uint32_t>(plan.roles.size());
        RoleBuilder(dealt_program(program, rank, replicas), role, make_schedule, plan).build();
      }
      continue;
    }
    std::map<const models::Program*, std::uint32_t> role_of;
    for (Rank device = 0; device < replicas; ++device) {
      const std::shared_ptr<const models::Program>& program = stages[stage].program_of(device);
      const auto [known, is_new] = role_of.try_emplace(program.get());
      if (is_new) known->second = RoleBuilder(program, role, make_schedule, plan).build();
      plan.role_of[stage * replicas + device] = known->second;
    }
  }
  return plan;
}

StageProgram fuse_communication(models::Program program, const FusionRules& fusion, bool as_gathered,
                                const FamilyOfParameters& mirrors) {
  // Gradients by what is done with them (scattered, with each micro-batch), among whom, in which type and, with each
  // micro-batch, behind which chunk, in parameter order; weights by how often, among whom and the type in which they
  // are gathered and, for every use, by the chunk that reads them.
  std::vector<std::uint32_t> gradient_of(program.parameters.size(), ~0U);
  std::map<std::tuple<bool, bool, std::uint32_t, DataType, std::uint32_t>, std::vector<FusedTensor>> reduced;
  std::map<std::tuple<bool, std::uint32_t, DataType, std::uint32_t>, std::vector<FusedTensor>> gathered;
  std::vector<std::uint32_t> alone;  // gradients
  const std::vector<std::uint32_t> read_by = reading_chunks(program);
  for (std::uint32_t g = 0; g < program.gradients.size(); ++g) gradient_of[program.gradients[g].parameter] = g;
  for (std::uint32_t index = 0; index < program.parameters.size(); ++index) {
    const models::ParameterShare& share = program.parameters[index];
    const std::uint32_t copies = mirrors.empty() ? 0 : mirrors[index];
    if (share.shards > 1) {
      gathered[{share.gathered_each_use, copies, share.used_as, share.gathered_each_use ? read_by[index] : 0}]
          .push_back({index, share.shard() * size_of(share.used_as), share.shard()});
    }
    if (gradient_of[index] == ~0U) continue;  // borrowed
    if (copies == ShardedGraph::no_family) {
      alone.push_back(gradient_of[index]);
      continue;
    }
    const models::Gradient& gradient = program.gradients[gradient_of[index]];
    // The next micro-batch of a chunk writes its gradients before another chunk has ended with this one.
    const std::uint32_t chunk = share.sums_parts ? program.kernels[gradient.kernel].chunk : 0;
    reduced[{share.shards > 1, share.sums_parts, copies, gradient.dtype, chunk}].push_back(
        {index, gradient.elements * size_of(gradient.dtype), gradient.elements});
  }
  StageProgram stage;
  for (const auto& [how, tensors] : gathered) {
    for (std::vector<std::uint32_t>& parameters : fuse(tensors, fusion.allgather)) {
      stage.gathers.push_back({std::move(parameters), std::get<0>(how), std::get<1>(how)});
    }
  }
  std::ranges::sort(stage.gathers, {}, [](const WeightGather& gather) { return gather.parameters.front(); });
  const FusionRule of_scattered =
      as_gathered ? rule_of_gathers(stage.gathers, program.parameters.size()) : fusion.reduce_scatter;
  struct Fused {
    std::vector<std::uint32_t> gradients;
    bool scattered = false;
    bool each_micro_batch = false;
    std::uint32_t copies = 0;
    std::uint32_t ready = 0;
  };
  std::vector<Fused> all;
  for (const auto& [how, tensors] : reduced) {
    const bool scattered = std::get<0>(how);
    const bool each_micro_batch = std::get<1>(how);
    for (const std::vector<std::uint32_t>& parameters : fuse(tensors, scattered ? of_scattered : fusion.allreduce)) {
      Fused one{
          .gradients = {}, .scattered = scattered, .each_micro_batch = each_micro_batch, .copies = std::get<2>(how)};
      for (const std::uint32_t parameter : parameters) {
        one.gradients.push_back(gradient_of[parameter]);
        one.ready = std::max(one.ready, program.gradients[gradient_of[parameter]].kernel);
      }
      std::ranges::sort(one.gradients);
      all.push_back(std::move(one));
    }
  }
  std::ranges::stable_sort(all, {}, &Fused::ready);
  std::vector<std::uint32_t> order;
  for (const Fused& one : all) {
    const auto first = static_cast<std::uint32_t>(order.size());
    order.insert(order.end(), one.gradients.begin(), one.gradients.end());
    stage.reductions.push_back({.segment = {first, static_cast<std::uint32_t>(order.size() - 1)},
                                .scattered = one.scattered,
                                .each_micro_batch = one.each_micro_batch,
                                .copies = one.copies});
  }
  std::ranges::sort(alone);
  order.insert(order.end(), alone.begin(), alone.end());
  renumber_gradients(program, order);
  stage.program = std::make_shared<const models::Program>(std::move(program));
  return stage;
}

}  // namespace hcclsim::hccl
