#include "hccl/parallel/start_up.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// The copies of all stages in one order, so that no two stages wait for each other.
struct Copy {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t tag = 0;
  std::uint64_t elements = 0;
  DataType type = DataType::fp32;
};

std::vector<Copy> copies_of(const std::vector<StartUp>& stages, Rank replicas) {
  std::vector<Copy> copies;
  for (std::uint32_t stage = 0; stage < stages.size(); ++stage) {
    for (const models::Kernel& kernel : stages[stage].copies) {
      const models::CommunicationWork& work = *kernel.communication;
      if (work.kind != models::OperatorKind::send) continue;
      const auto peer = static_cast<std::uint32_t>(stage + work.peer.offset / static_cast<std::int64_t>(replicas));
      copies.push_back({stage, peer, work.peer.tag, work.elements, work.dtype});
    }
  }
  std::ranges::sort(copies, {}, [](const Copy& copy) { return std::tuple(copy.source, copy.destination, copy.tag); });
  return copies;
}

}  // namespace

Plan start_up_plan(const std::vector<StartUp>& stages, Rank ranks, const ScheduleMaker& make_schedule) {
  const Rank replicas = stages.empty() ? 0 : static_cast<Rank>(ranks / stages.size());
  if (replicas == 0) internal_error("{} ranks cannot be {} stages", ranks, stages.size());
  Plan plan;
  for (Rank rank = 0; rank < ranks; ++rank) plan.role_of.push_back(rank / replicas);
  for (std::uint32_t stage = 0; stage < stages.size(); ++stage) {
    auto program = std::make_shared<models::Program>();
    program->title = "start-up";
    Role role{.program = std::move(program),
              .streams = {StreamKind::compute, StreamKind::communication, StreamKind::update, StreamKind::communication,
                          StreamKind::communication},
              .tasks = {},
              .stage = stage};
    if (stages[stage].broadcast_elements > 0 && replicas > 1) {
      const auto family = static_cast<std::uint32_t>(plan.families.size());
      Communicator group{fmt::format("stage{}_replicas", stage), {}};
      for (Rank rank = 0; rank < replicas; ++rank) group.ranks.push_back(stage * replicas + rank);
      const Operation operation{.ranks = replicas,
                                .elements = stages[stage].broadcast_elements,
                                .type = DataType::fp32,
                                .collective = Collective::broadcast};
      role.tasks.push_back({.work = CollectiveTask{static_cast<std::uint32_t>(plan.collectives.size())},
                            .purpose = {.phase = StepPhase::gather, .stage = stage},
                            .stream = role_stream::communication});
      plan.collectives.push_back({family, operation, {make_schedule(group, operation)}, "parameter_broadcast"});
      plan.families.push_back({{std::move(group)}});
    }
    plan.roles.push_back(std::move(role));
  }
  for (const Copy& copy : copies_of(stages, replicas)) {
    const auto message = static_cast<std::uint32_t>(plan.messages.size());
    const std::string name = fmt::format("parameter_{}", copy.tag);
    const Operation operation{.ranks = 2,
                              .type = copy.type,
                              .collective = Collective::send_recv,
                              .in_place = false,
                              .counts = BlockCounts::of_pairs(2, {0, copy.elements, 0, 0})};
    plan.messages.push_back({make_schedule({name, {0, 1}}, operation), name, copy.elements * size_of(copy.type)});
    const std::int64_t offset =
        (static_cast<std::int64_t>(copy.destination) - copy.source) * static_cast<std::int64_t>(replicas);
    const auto add = [&](std::uint32_t stage, auto work) {
      plan.roles[stage].tasks.push_back(
          {.work = work, .purpose = {.phase = StepPhase::gather, .stage = stage}, .stream = role_stream::messages});
    };
    add(copy.source, SendTask{message, offset, copy.tag});
    add(copy.destination, ReceiveTask{message, -offset, copy.tag});
  }
  return plan;
}

}  // namespace hcclsim::hccl
