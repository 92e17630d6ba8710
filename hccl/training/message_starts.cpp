#include "hccl/training/message_starts.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "hccl/training/step_view.hpp"

namespace hcclsim::hccl {

MessageStarts::MessageStarts(const Plan& plan, const sim::Trace& trace) {
  struct End {
    Rank rank = 0;
    std::uint32_t task = 0;
    Seconds start = 0;
  };
  // Of iteration, source, destination and tag; the n-th send of a rank meets the n-th receive.
  std::map<std::tuple<std::int32_t, Rank, Rank, std::uint32_t>, std::pair<std::vector<End>, std::vector<End>>> ends;
  for (const sim::Span& span : trace.spans()) {
    if (plan.messages.empty() || span.kind != sim::SpanKind::collective) continue;
    const PlanTask* task = purpose_of(plan, span).task;
    if (task == nullptr) continue;
    const End end{span.rank, span.id.task, span.start};
    if (const auto* send = std::get_if<SendTask>(&task->work)) {
      const auto peer = static_cast<Rank>(span.rank + send->offset);
      ends[{span.id.iteration, span.rank, peer, send->tag}].first.push_back(end);
    } else if (const auto* receive = std::get_if<ReceiveTask>(&task->work)) {
      const auto peer = static_cast<Rank>(span.rank + receive->offset);
      ends[{span.id.iteration, peer, span.rank, receive->tag}].second.push_back(end);
    }
  }
  for (auto& [key, both] : ends) {
    auto& [sends, receives] = both;
    std::ranges::sort(sends, {}, &End::task);
    std::ranges::sort(receives, {}, &End::task);
    for (std::size_t i = 0; i < std::min(sends.size(), receives.size()); ++i) {
      const Seconds date = std::max(sends[i].start, receives[i].start);
      for (const End& end : {sends[i], receives[i]}) dates_[{end.rank, std::get<0>(key), end.task}] = date;
    }
  }
}

Seconds MessageStarts::under_way(const sim::Span& span) const {
  const auto found = dates_.find({span.rank, span.id.iteration, span.id.task});
  return found == dates_.end() ? span.start : found->second;
}

}  // namespace hcclsim::hccl
