#include "clients/server/communication/call_groups.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>

#include <hccl/hccl_types.h>

#include "base/names.hpp"

namespace hcclsim::clients {
namespace {

bool begins_communicator(const Question& question) {
  return question.call == Call::begin_communicator || question.call == Call::begin_from_table;
}

/// The messages of a group that are on one stream, several in number, go side by side: as a batch of those that are the
/// first between their ends, one of the second, and so on.
std::vector<Question> with_merged_messages(const std::vector<Question>& calls) {
  struct Merged {
    std::map<std::pair<std::uint32_t, bool>, std::size_t> before{};  // peer, direction: how many
    std::vector<std::vector<BatchItem>> batches{};
    std::size_t count = 0;
  };
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // communicator, stream
  std::map<Place, Merged> messages;
  const auto message_of = [](const Question& question) -> std::optional<std::pair<Place, BatchItem>> {
    if (question.call != Call::collective) return std::nullopt;
    CollectiveArguments arguments;
    std::memcpy(&arguments, question.bytes.data(), sizeof arguments);
    const bool receives = arguments.collective == CollectiveCall::receive;
    if (!receives && arguments.collective != CollectiveCall::send) return std::nullopt;
    return std::pair(Place{arguments.communicator, arguments.stream},
                     BatchItem{.receives = receives ? 1U : 0U,
                               .type = arguments.type,
                               .peer = arguments.peer,
                               .address = receives ? arguments.receive : arguments.send,
                               .count = arguments.count});
  };
  for (const Question& question : calls) {
    const auto message = message_of(question);
    if (!message.has_value()) continue;
    const auto& [place, item] = *message;
    Merged& own = messages[place];
    const std::size_t round = own.before[{item.peer, item.receives != 0}]++;
    if (round == own.batches.size()) own.batches.emplace_back();
    own.batches[round].push_back(item);
    ++own.count;
  }
  std::vector<Question> merged;
  for (const Question& question : calls) {
    const auto message = message_of(question);
    if (!message.has_value() || messages[message->first].count == 1) {
      merged.push_back(question);
      continue;
    }
    const auto& [place, item] = *message;
    for (const std::vector<BatchItem>& batch : std::exchange(messages[place].batches, {})) {
      constexpr std::uint64_t of_a_group = 1;
      merged.push_back(
          {.call = Call::batch,
           .values = {place.first, place.second, of_a_group},
           .bytes = std::string(reinterpret_cast<const char*>(batch.data()), batch.size() * sizeof batch.front())});
    }
  }
  return merged;
}

}  // namespace

std::optional<Result> CallGroups::handle(ThreadId id, const Question& question) {
  if (question.call == Call::begin_group) {
    ++groups_[id].depth;
    return Result{};
  }
  if (question.call == Call::end_group) return end(id);
  if (const auto group = groups_.find(id); group != groups_.end()) return keep(id, group->second, question);
  return begins_communicator(question) ? beginnings_.handle(id, question) : communication_.run(id, {question});
}

Result CallGroups::keep(ThreadId id, Group& group, Question question) {
  if (begins_communicator(question)) {
    group.beginnings.emplace_back(std::move(question), core_.hosts.thread(id).npu);
    constexpr std::uint64_t later = 1;
    return {.values = {0, later}};
  }
  // The default stream is that of the device that is set now.
  ClientStream* const usual = streams_.find(id, 0);
  const std::uint64_t handle = usual == nullptr ? 0 : streams_.handle_of(*usual);
  if (question.call == Call::batch) {
    if (question.values[1] == 0) question.values[1] = handle;
  } else {
    CollectiveArguments arguments;
    std::memcpy(&arguments, question.bytes.data(), sizeof arguments);
    if (arguments.stream == 0) arguments.stream = handle;
    std::memcpy(question.bytes.data(), &arguments, sizeof arguments);
  }
  group.calls.push_back(std::move(question));
  return {};
}

std::optional<Result> CallGroups::end(ThreadId id) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) return refused(HCCL_E_NOT_SUPPORT, "no group has begun");
  if (--found->second.depth > 0) return Result{.values = {found->second.depth}};
  const Group group = std::move(found->second);
  groups_.erase(found);
  if (group.beginnings.empty()) return communication_.run(id, with_merged_messages(group.calls));
  if (group.calls.empty()) return beginnings_.begin_together(id, group.beginnings);
  return refused(HCCL_E_NOT_SUPPORT, "a group has communicators that begin, or communication, not both");
}

void CallGroups::end_process(std::uint32_t process) const {
  for (const auto& [id, group] : groups_) {
    const std::size_t calls = group.calls.size() + group.beginnings.size();
    if (core_.hosts.thread(id).process != process || calls == 0 || core_.failure.has_value()) continue;
    simulated_failure("client",
                      "process {} ended between HcclGroupStart and HcclGroupEnd: {} of the group {} not issued",
                      process, counted(calls, "call"), calls == 1 ? "was" : "were");
  }
}

}  // namespace hcclsim::clients
