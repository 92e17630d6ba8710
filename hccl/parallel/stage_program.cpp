#include "hccl/parallel/stage_program.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace hcclsim::hccl {
namespace {

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

}  // namespace

std::vector<Reduction> reductions_of(const std::vector<Segment>& segments, std::uint32_t copies) {
  std::vector<Reduction> reductions;
  for (const Segment& segment : segments) reductions.push_back({.segment = segment, .copies = copies});
  return reductions;
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
