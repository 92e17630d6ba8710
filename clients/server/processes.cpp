#include "clients/server/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace hcclsim::clients {

std::optional<Result> Processes::handle(ThreadId id, const Question& question) {
  const HostThread& thread = core_.hosts.thread(id);
  const auto& values = question.values;
  switch (question.call) {
    case Call::exchange:
      return exchange(id, question);
    case Call::abort:
      simulated_failure("client", "process {} has called MPI_Abort({})", thread.process,
                        static_cast<std::int64_t>(values[0]));
    case Call::send_bytes: {
      Message message{.source = values[1], .tag = values[3], .bytes = question.bytes, .date = thread.date};
      Box& box = boxes_[{values[0], static_cast<std::uint32_t>(values[2])}];
      const auto takes = std::ranges::find_if(box.receivers, [&](const auto& one) { return one.takes(message); });
      if (takes == box.receivers.end()) {
        box.messages.push_back(std::move(message));
        return Result{};
      }
      const ThreadId receiver = takes->thread;
      box.receivers.erase(takes);
      core_.hosts.resume(receiver, message.date, result_of(message));
      return Result{};
    }
    default: {
      Box& box = boxes_[{values[0], thread.process}];
      const Receiver receiver{.thread = id, .source = values[1], .tag = values[2]};
      const auto found = std::ranges::find_if(box.messages, [&](const auto& one) { return receiver.takes(one); });
      if (found == box.messages.end()) {
        box.receivers.push_back(receiver);
        const std::string from = values[1] == none ? "any rank" : fmt::format("rank {}", values[1]);
        core_.hosts.park(id, [from] { return "waits in MPI_Recv for a message of " + from; });
        return std::nullopt;
      }
      HostThread& own = core_.hosts.thread(id);
      own.date = std::max(own.date, found->date);
      Result result = result_of(*found);
      box.messages.erase(found);
      return result;
    }
  }
}

std::optional<Result> Processes::exchange(ThreadId id, const Question& question) {
  const auto [communicator, number, rank, ranks, a, b, c, d] = question.values;
  const std::string meeting = fmt::format("mpi {:x} #{}", communicator, number);
  const std::size_t members = ranks * sizeof(std::uint32_t);
  const std::string problem = meetings_.problem(meeting, static_cast<Rank>(rank), static_cast<Rank>(ranks));
  if (!problem.empty()) {
    constexpr std::int32_t mpi_error = 1;
    return refused(mpi_error, problem + "; one thread of a process at a time can be in a collective of MPI");
  }
  core_.hosts.park(id, [this, meeting] { return "waits in MPI for " + meetings_.missing(meeting); });
  const auto done = [this, id](const std::map<Rank, Guest>* all, Seconds date) {
    std::string bytes;
    for (const auto& [other, guest] : *all) {
      const std::uint64_t length = guest.bytes.size();
      bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
      bytes += guest.bytes;
    }
    core_.hosts.resume(id, date, {.bytes = std::move(bytes)});
  };
  meetings_.join(
      meeting, static_cast<Rank>(rank), static_cast<Rank>(ranks),
      {.thread = id, .process = core_.hosts.thread(id).process, .bytes = question.bytes.substr(members), .done = done},
      std::numeric_limits<Seconds>::infinity());
  return std::nullopt;
}

}  // namespace hcclsim::clients
