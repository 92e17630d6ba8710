#include "hccl/parallel/parallel_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "hccl/parallel/pipeline/message_order.hpp"

namespace hcclsim::hccl {
namespace {

/// Groups of `size` ranks of a stage whose places in it are `distance` apart.
GroupFamily groups_of_stage(std::uint32_t stage, Rank ranks, Rank size, Rank distance, std::string_view what) {
  GroupFamily family;
  const Rank span = size * distance;
  for (Rank block = 0; block < ranks; block += span) {
    for (Rank first = block; first < block + distance; ++first) {
      Communicator group{fmt::format("stage{}_{}{}", stage, what, family.groups.size()), {}};
      for (Rank member = 0; member < size; ++member) group.ranks.push_back(stage * ranks + first + member * distance);
      family.groups.push_back(std::move(group));
    }
  }
  return family;
}

std::uint32_t add_family(Plan& plan, GroupFamily family) {
  plan.families.push_back(std::move(family));
  return static_cast<std::uint32_t>(plan.families.size() - 1);
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
  const bool partial = options.shape.stages > 1 || options.shard_ranks > 1;
  const std::uint32_t everyone = checks_all(*stages.front().program) && options.shape.stages > 1
                                     ? add_family(plan, {{world_communicator(options.ranks)}})
                                     : 0;
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
    role.replicas = add_family(plan, groups_of_stage(stage, replicas, replicas, 1, "replicas"));
    role.shards = role.replicas;
    if (options.shard_ranks > 1 && options.shard_ranks < replicas) {
      role.shards = add_family(plan, groups_of_stage(stage, replicas, options.shard_ranks, 1, "shards"));
      role.mirrors = add_family(
          plan, groups_of_stage(stage, replicas, replicas / options.shard_ranks, options.shard_ranks, "mirrors"));
    }
    role.everyone = options.shape.stages > 1 ? everyone : role.replicas;
    if (options.dealt.has_value() && replicas > 1) {
      const models::Program& program = *stages[stage].program;
      role.closing = broadcasts_of(program, role.replicas, replicas, *options.dealt);
      for (Rank rank = 0; rank < replicas; ++rank) {
        plan.role_of[stage * replicas + rank] = static_cast<std::uint32_t>(plan.roles.size());
        RoleBuilder(dealt_program(program, rank, replicas), role, make_schedule, plan).build();
      }
      continue;
    }
    RoleBuilder(stages[stage].program, std::move(role), make_schedule, plan).build();
  }
  return plan;
}

StageProgram fuse_communication(models::Program program, const FusionRules& fusion, bool as_gathered) {
  // Gradients by what is done with them (scattered, with each micro-batch), in which type and, with each micro-batch,
  // behind which chunk, in parameter order; weights by the type in which and how often they are gathered and, for every
  // use, by the chunk that reads them.
  std::vector<std::uint32_t> gradient_of(program.parameters.size(), ~0U);
  std::map<std::tuple<bool, bool, DataType, std::uint32_t>, std::vector<FusedTensor>> reduced;
  std::map<std::tuple<bool, DataType, std::uint32_t>, std::vector<FusedTensor>> gathered;
  const std::vector<std::uint32_t> read_by = reading_chunks(program);
  for (std::uint32_t g = 0; g < program.gradients.size(); ++g) gradient_of[program.gradients[g].parameter] = g;
  for (std::uint32_t index = 0; index < program.parameters.size(); ++index) {
    const models::ParameterShare& share = program.parameters[index];
    if (share.shards > 1) {
      gathered[{share.gathered_each_use, share.used_as, share.gathered_each_use ? read_by[index] : 0}].push_back(
          {index, share.shard() * size_of(share.used_as), share.shard()});
    }
    if (gradient_of[index] == ~0U) continue;  // borrowed
    const models::Gradient& gradient = program.gradients[gradient_of[index]];
    // The next micro-batch of a chunk writes its gradients before another chunk has ended with this one.
    const std::uint32_t chunk = share.sums_parts ? program.kernels[gradient.kernel].chunk : 0;
    reduced[{share.shards > 1, share.sums_parts, gradient.dtype, chunk}].push_back(
        {index, gradient.elements * size_of(gradient.dtype), gradient.elements});
  }
  StageProgram stage;
  for (const auto& [how, tensors] : gathered) {
    for (std::vector<std::uint32_t>& parameters : fuse(tensors, fusion.allgather)) {
      stage.gathers.push_back({std::move(parameters), std::get<0>(how)});
    }
  }
  std::ranges::sort(stage.gathers, {}, [](const WeightGather& gather) { return gather.parameters.front(); });
  const FusionRule of_scattered =
      as_gathered ? rule_of_gathers(stage.gathers, program.parameters.size()) : fusion.reduce_scatter;
  struct Fused {
    std::vector<std::uint32_t> gradients;
    bool scattered = false;
    bool each_micro_batch = false;
    std::uint32_t ready = 0;
  };
  std::vector<Fused> all;
  for (const auto& [how, tensors] : reduced) {
    const bool scattered = std::get<0>(how);
    const bool each_micro_batch = std::get<1>(how);
    for (const std::vector<std::uint32_t>& parameters : fuse(tensors, scattered ? of_scattered : fusion.allreduce)) {
      Fused one{.gradients = {}, .scattered = scattered, .each_micro_batch = each_micro_batch};
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
                                .each_micro_batch = one.each_micro_batch});
  }
  renumber_gradients(program, order);
  stage.program = std::make_shared<const models::Program>(std::move(program));
  return stage;
}

}  // namespace hcclsim::hccl
