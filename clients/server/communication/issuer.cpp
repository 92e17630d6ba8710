#include "clients/server/communication/issuer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hccl/runtime/collective/issue.hpp"

namespace hcclsim::clients {

void Issuer::issue(const std::shared_ptr<const RankCall>& call) {
  HostThread& thread = core_.hosts.thread(call->thread);
  const MadeSchedule& made = schedules_.of(*call);
  const hccl::Issue issue = issue_of(core_.costs, core_.launch, *made.schedule, call->place);
  const Seconds begin = std::max(thread.date, core_.loop.now()) + issue.until_start();
  thread.date = begin + issue.behind_the_call;
  streams_.reach(*call->stream, begin);
  enqueue(call, *call->stream, made, {begin, issue.task});
}

void Issuer::issue_together(const std::vector<std::shared_ptr<RankCall>>& calls) {
  const RankCall& first = *calls.front();
  ClientStream& stream = *first.stream;
  HostThread& thread = core_.hosts.thread(first.thread);
  hccl::Issue whole;
  std::vector<hccl::Issue> issues;
  for (const auto& call : calls) {
    issues.push_back(issue_of(core_.costs, core_.launch, *schedules_.of(*call).schedule, call->place));
    whole.call = issues.back().call;
    whole.together += issues.back().together;
    whole.behind_the_call += issues.back().behind_the_call;
  }
  const Seconds begin = std::max(thread.date, core_.loop.now()) + whole.until_start();
  thread.date = begin + whole.behind_the_call;
  streams_.reach(stream, begin);
  const char* const what = first.batch ? "HcclBatchSendRecv" : "messages of a group";
  streams_.begin_task(stream, fmt::format("{} on {}", what, first.group->name));
  std::vector<hccl::EventId> ended;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    constexpr std::uint32_t most_items = 1024;
    const std::uint32_t number = 1 + stream.number * most_items + static_cast<std::uint32_t>(i);
    ClientStream& side = streams_.hidden(stream.process, stream.npu, number);
    const auto [fork, is_new] = forks_.try_emplace(&side);
    if (is_new) fork->second = {core_.runtime.create_event(), core_.runtime.create_event()};
    const auto [begins, ends_here] = fork->second;
    core_.runtime.record(stream.id, begins);
    core_.runtime.wait(side.id, begins);
    enqueue(calls[i], side, schedules_.of(*calls[i]), {begin, issues[i].task});
    core_.runtime.record(side.id, ends_here);
    ended.push_back(ends_here);
  }
  for (const hccl::EventId event : ended) core_.runtime.wait(stream.id, event);
  streams_.end_task(stream, [] {});
}

void Issuer::enqueue(const std::shared_ptr<const RankCall>& call, ClientStream& stream, const MadeSchedule& made,
                     const hccl::Pace& pace) {
  const std::uint32_t name = core_.trace.intern(call->function);
  const bool only_reads = call->operation.in_place && call->rank == call->operation.root;
  streams_.begin_task(
      stream, records_.enqueue(*call, stream, made),
      only_reads ? Uses{.reads = call->buffers.output} : Uses{call->buffers.input, call->buffers.output});
  const auto overflow = devices_.saturates(stream.npu) ? device::Overflow::saturate : device::Overflow::infinity;
  core_.runtime.host_function(stream.id, [this, call, overflow] { records_.begin(*call, overflow); });
  const CommunicatorGroup& group = *call->group;
  if (!call->is_message()) {
    core_.runtime.collective(stream.id, group.id, made.schedule, name, {}, pace);
  } else {
    const std::uint32_t tag = 2 * group.number + (call->batch ? 1 : 0);
    const Rank peer = group.npus[call->peer];
    if (call->receives) {
      core_.runtime.receive(stream.id, peer, tag, made.schedule, name, {}, pace);
    } else {
      core_.runtime.send(stream.id, peer, tag, made.schedule, name, {}, pace);
    }
  }
  streams_.end_task(stream, [this, call] { records_.end(*call); });
}

}  // namespace hcclsim::clients
