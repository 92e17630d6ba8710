#include "clients/server/communication/connections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include <hccl/hccl_types.h>

#include "base/error.hpp"

namespace hcclsim::clients {

void Connections::connect(const std::shared_ptr<const RankCall>& call, const std::string& transport, Answers& answers,
                          const Done& failed, const std::function<void()>& connected) {
  const std::uint32_t group = call->group->number;
  if (connected_.contains({group, transport})) return connected();
  meet(fmt::format("connect {} {}", group, transport), call, {}, answers, failed,
       [this, group, transport, connected](const Guests&) {
         connected_.emplace(group, transport);
         connected();
       });
}

void Connections::exchange_counts(const std::shared_ptr<const RankCall>& call, Answers& answers, const Done& failed,
                                  const std::function<void(Counts)>& known) {
  const std::size_t ranks = call->group->ranks();
  const std::uint64_t number = exchanges_[{call->group->number, call->rank}]++;
  meet(fmt::format("counts {} #{}", call->group->number, number), call,
       std::string(reinterpret_cast<const char*>(call->own_counts.data()), 2 * ranks * sizeof(std::uint64_t)), answers,
       failed, [call, known](const Guests& guests) { known(counts_of(guests, call->group->name)); });
}

Connections::Counts Connections::counts_of(const Guests& guests, const std::string& communicator) {
  const std::size_t ranks = guests.size();
  const std::size_t bytes = ranks * sizeof(std::uint64_t);
  Counts matrix(ranks * ranks);
  for (const auto& [rank, guest] : guests) std::memcpy(&matrix[rank * ranks], guest.bytes.data(), bytes);
  for (const auto& [receiver, guest] : guests) {
    Counts expected(ranks);
    std::memcpy(expected.data(), guest.bytes.data() + bytes, bytes);
    for (std::size_t sender = 0; sender < ranks; ++sender) {
      const std::uint64_t sent = matrix[sender * ranks + receiver];
      if (sent == expected[sender]) continue;
      simulated_failure("mismatch", "HcclAlltoAllV on {}: rank {} sends {} elements to rank {}, which expects {}",
                        communicator, sender, sent, receiver, expected[sender]);
    }
  }
  return matrix;
}

void Connections::meet(const std::string& meeting, const std::shared_ptr<const RankCall>& call, std::string bytes,
                       Answers& answers, const Done& failed, const std::function<void(const Guests&)>& met) {
  const Rank needed = call->operation.ranks;
  answers.add_wait([this, call, meeting]() -> std::string {
    const std::string ranks = missing(*call, meetings_.missing(meeting));
    if (ranks.empty()) return "";
    return fmt::format("waits in {}, which connects for the first time, for {}", call->function, ranks);
  });
  const auto done = [this, call, meeting, failed, met](const Guests* all, Seconds date) {
    HostThread& thread = core_.hosts.thread(call->thread);
    thread.date = std::max(thread.date, date);
    if (all != nullptr) return met(*all);
    const Seconds since = date - timeout_;
    failed(refused(HCCL_E_TIMEOUT, fmt::format("it connects for the first time, and has waited {:.6g} s "
                                               "(HCCL_CONNECT_TIMEOUT) for {}{}",
                                               timeout_, missing(*call, meetings_.missing(meeting, since)),
                                               doing_of(*call, meetings_.missing_ranks(meeting, since)))));
  };
  const std::uint32_t process = core_.hosts.thread(call->thread).process;
  const std::string problem = meetings_.problem(meeting, call->place, needed);
  if (!problem.empty()) return failed(refused(HCCL_E_PARA, "it connects for the first time: " + problem));
  meetings_.join(meeting, call->place, needed,
                 {.thread = call->thread, .process = process, .bytes = std::move(bytes), .done = done}, timeout_);
}

std::string Connections::missing(const RankCall& call, const std::string& ranks) {
  if (ranks == "nobody") return {};
  return fmt::format("{} on {}", call.is_message() ? fmt::format("rank {}", call.peer) : ranks, call.group->name);
}

std::string Connections::doing_of(const RankCall& call, const std::vector<Rank>& missing) const {
  constexpr std::size_t most = 4;
  const std::vector<Rank> members = call.is_message() ? std::vector{call.peer} : missing;
  std::string text;
  for (std::size_t i = 0; i < std::min(members.size(), most); ++i) {
    const std::uint32_t process = call.group->processes[members[i]];
    if (core_.hosts.process(process).ended) {
      text += fmt::format("; process {} has ended", process);
      continue;
    }
    const std::optional<ThreadId> thread = core_.hosts.thread_for(process, call.group->npus[members[i]]);
    if (!thread.has_value() || core_.hosts.thread(*thread).state == HostThread::State::ready) continue;
    if (*thread == call.thread) {
      return "; it is in this thread's own process: calls of one thread for several NPUs belong between HcclGroupStart "
             "and HcclGroupEnd";
    }
    text += fmt::format("; {} {}", core_.hosts.name_of(*thread), core_.hosts.doing(*thread));
  }
  return text;
}

}  // namespace hcclsim::clients
