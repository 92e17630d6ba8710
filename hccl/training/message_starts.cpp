#include "hccl/training/message_starts.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "hccl/training/step_view.hpp"

namespace hcclsim::hccl {

MessageStarts::MessageStarts(const Plan& plan, const sim::Trace& trace) {
  if (plan.messages.empty()) return;
  std::uint32_t stages = 1;
  for (const Role& role : plan.roles) stages = std::max(stages, role.stage + 1);
  const Rank places = plan.ranks() / stages;
  // Of iteration, source, destination and tag: sends and receives.
  std::map<std::tuple<std::int32_t, Rank, Rank, std::uint32_t>, std::vector<std::vector<Arrival>>> messages;
  // Of iteration, collective and place: of each stage.
  std::map<std::tuple<std::int32_t, std::uint32_t, Rank>, std::vector<std::vector<Arrival>>> collectives;
  const auto add = [](std::vector<std::vector<Arrival>>& ranks, std::size_t count, std::size_t number,
                      const Arrival& arrival) {
    ranks.resize(count);
    ranks[number].push_back(arrival);
  };
  for (const sim::Span& span : trace.spans()) {
    if (span.kind != sim::SpanKind::collective) continue;
    const PlanTask* task = purpose_of(plan, span).task;
    if (task == nullptr) continue;
    const Arrival arrival{span.rank, span.id.task, span.start};
    if (const auto* send = std::get_if<SendTask>(&task->work)) {
      const auto peer = static_cast<Rank>(span.rank + send->offset);
      add(messages[{span.id.iteration, span.rank, peer, send->tag}], 2, 0, arrival);
    } else if (const auto* receive = std::get_if<ReceiveTask>(&task->work)) {
      const auto peer = static_cast<Rank>(span.rank + receive->offset);
      add(messages[{span.id.iteration, peer, span.rank, receive->tag}], 2, 1, arrival);
    } else if (const auto* collective = std::get_if<CollectiveTask>(&task->work)) {
      add(collectives[{span.id.iteration, collective->collective, span.rank % places}], stages, span.rank / places,
          arrival);
    }
  }
  for (auto& [key, ranks] : messages) meet(std::get<0>(key), std::move(ranks));
  for (auto& [key, ranks] : collectives) {
    std::erase_if(ranks, [](const std::vector<Arrival>& of_stage) { return of_stage.empty(); });
    meet(std::get<0>(key), std::move(ranks));
  }
}

void MessageStarts::meet(std::int32_t iteration, std::vector<std::vector<Arrival>> ranks) {
  if (ranks.size() < 2) return;
  std::size_t count = ranks.front().size();
  for (std::vector<Arrival>& arrivals : ranks) {
    std::ranges::sort(arrivals, {}, &Arrival::task);
    count = std::min(count, arrivals.size());
  }
  for (std::size_t i = 0; i < count; ++i) {
    Seconds date = 0;
    for (const std::vector<Arrival>& arrivals : ranks) date = std::max(date, arrivals[i].start);
    for (const std::vector<Arrival>& arrivals : ranks) dates_[{arrivals[i].rank, iteration, arrivals[i].task}] = date;
  }
}

Seconds MessageStarts::under_way(const sim::Span& span) const {
  const auto found = dates_.find({span.rank, span.id.iteration, span.id.task});
  // A rank's part of a collective may be over before all others come.
  return found == dates_.end() ? span.start : std::min(found->second, span.end);
}

}  // namespace hcclsim::hccl
