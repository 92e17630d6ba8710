#include "clients/server/communication/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/error.hpp"
#include "base/names.hpp"

namespace hcclsim::clients {
namespace {

std::string text_of(const RankCall& call) {
  const hccl::Operation& operation = call.operation;
  if (operation.collective == hccl::Collective::barrier) return call.function;
  const std::uint64_t count =
      operation.counts.empty() ? operation.elements : operation.counts.offset(0, operation.ranks);
  std::string text = fmt::format("{} of {} {}", call.function, count, name_of(operation.type));
  if (reduces(operation.collective)) text += fmt::format(", {}", name_of(operation.op));
  if (is_rooted(operation.collective)) text += fmt::format(", root {}", operation.root);
  if (call.zero_copy) text += ", zero copy";
  return text;
}

/// Where the counts of two ranks differ first; empty: nowhere.
std::string difference_of(const hccl::Operation& own, const hccl::Operation& other) {
  const std::vector<std::uint64_t>& counts = own.counts.counts();
  const std::vector<std::uint64_t>& others = other.counts.counts();
  if (own.collective != other.collective || counts.size() != others.size()) return "";
  const auto [at, at_other] = std::ranges::mismatch(counts, others);
  if (at == counts.end()) return "";
  const auto block = static_cast<std::size_t>(at - counts.begin());
  const std::string which = counts_pairs(own.collective)
                                ? fmt::format("from rank {} to rank {}", block / own.ranks, block % own.ranks)
                                : fmt::format("of block {}", block);
  return fmt::format(", {} {} and {} elements", which, *at, *at_other);
}

/// Throws if the program has freed memory of a call that is under way.
void require_memory(const std::string& name, const RankCall& call) {
  for (const Pieces* const pieces : {&call.buffers.input, &call.buffers.output}) {
    if (std::ranges::none_of(*pieces, [](const DeviceSpan& span) { return span.pages->freed(); })) continue;
    simulated_failure("client", "{}: memory of rank {} on NPU {} was freed before it had ended", name, call.rank,
                      pieces->front().npu);
  }
}

}  // namespace

void Records::announce(RankCall& call) {
  const CommunicatorGroup& group = *call.group;
  std::string name;
  std::vector<Rank> members(group.ranks());
  std::iota(members.begin(), members.end(), Rank{0});
  call.place = call.rank;
  if (call.is_message()) {
    const std::uint32_t kind = call.batch ? 2 : 1;
    const std::uint64_t number = messages_[{group.number, kind, call.source(), call.destination(), call.receives}]++;
    call.key = {group.number, kind, call.source(), call.destination(), number};
    call.place = call.receives ? 1 : 0;
    members = {call.source(), call.destination()};
    name =
        fmt::format("message #{} from rank {} to rank {} on {}", number, call.source(), call.destination(), group.name);
  } else {
    const std::uint64_t number = collectives_[{group.number, call.rank}]++;
    empty_.erase({group.number, call.rank});
    call.key = {group.number, 0, 0, 0, number};
    name = fmt::format("{} #{} on {}", call.function, number, group.name);
  }
  Record& record = records_[call.key];
  const std::string what = text_of(call);
  if (record.group == nullptr) {
    record = {.what = what,
              .name = name,
              .group = call.group,
              .members = std::move(members),
              .operation = call.operation,
              .zero_copy = call.zero_copy};
  } else if (record.operation != call.operation || record.zero_copy != call.zero_copy) {
    const Rank other = record.members[*record.called.begin()];
    simulated_failure("mismatch",
                      "{}: rank {} (process {}) calls {}, rank {} (process {}) has called {}{}; all ranks must "
                      "call the same",
                      record.name, call.rank, group.processes[call.rank], what, other, group.processes[other],
                      record.what, difference_of(call.operation, record.operation));
  }
  record.called.insert(call.place);
}

void Records::note_empty(const RankCall& call) { empty_[{call.group->number, call.rank}] = text_of(call); }

const std::string& Records::enqueue(const RankCall& call, const ClientStream& stream, const MadeSchedule& made) {
  Record& record = records_[call.key];
  record.streams[call.place] = &stream;
  if (record.payload == nullptr && made.flow != nullptr) {
    record.payload = std::make_shared<Payload>(made.schedule, made.flow);
  }
  return record.name;
}

void Records::begin(const RankCall& call, device::Overflow overflow) {
  Record& record = records_[call.key];
  record.arrived.insert(call.place);
  require_memory(record.name, call);
  if (record.payload != nullptr) record.payload->arrive(call.place, call.buffers, overflow);
}

void Records::end(const RankCall& call) {
  const auto found = records_.find(call.key);
  if (found == records_.end()) return;  // a barrier that all have begun
  const Record& record = found->second;
  require_memory(record.name, call);
  if (record.payload != nullptr) record.payload->end(call.place, workers_);
  const bool over =
      record.payload != nullptr ? record.payload->finished() : record.arrived.size() == record.members.size();
  if (over) records_.erase(found);
}

std::string Records::missing_calls() const {
  constexpr std::size_t most = 12;
  std::string text;
  std::size_t lines = 0;
  for (const auto& [key, record] : records_) {
    if (record.arrived.size() == record.members.size() || record.called.empty() || ++lines > most) continue;
    text += fmt::format("\n  {} ({}) waits for", record.name, record.what) + missing_from(record);
  }
  if (lines > most) text += fmt::format("\n  and {} more", lines - most);
  return text;
}

std::string Records::missing_from(const Record& record) const {
  constexpr std::size_t most = 12;
  std::string text;
  std::size_t count = 0;
  for (Rank place = 0; place < record.members.size(); ++place) {
    if (record.arrived.contains(place) || ++count > most) continue;
    const Rank rank = record.members[place];
    text += fmt::format("{} rank {} (process {})", count > 1 ? "," : "", rank, record.group->processes[rank]);
    const auto stream = record.streams.find(place);
    if (stream == record.streams.end()) {
      const auto empty = empty_.find({record.group->number, rank});
      text += record.called.contains(place) ? ", whose host waits for others" : ", which has not called it";
      if (!record.called.contains(place) && empty != empty_.end()) {
        text += fmt::format(" (it has called {}, which does nothing)", empty->second);
      }
    } else if (!stream->second->tasks.empty()) {
      text += fmt::format(", whose stream {} is at {}", stream->second->number, stream->second->tasks.front().name);
    }
  }
  if (count > most) text += fmt::format(" and {} more", count - most);
  return text;
}

}  // namespace hcclsim::clients
