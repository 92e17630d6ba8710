#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "clients/server/hosts/hosts.hpp"
#include "clients/server/hosts/system_state.hpp"

// What threads do and wait for, for people.
namespace hcclsim::clients {
namespace {

/// What a thread that looks again and again looks at, for people.
const char* looks_at(Call call) {
  switch (call) {
    case Call::date:
      return "the date: MPI_Wtime or hcclsimDate";
    case Call::query_stream:
      return "a stream: aclrtStreamQuery";
    case Call::query_event:
      return "an event: aclrtQueryEvent…";
    case Call::async_error:
      return "errors: HcclGetCommAsyncError";
    case Call::status_by_name:
      return "a communicator: HcclCommGetStatus";
    default:
      return "something between sleeping and yielding";
  }
}

}  // namespace

std::string Hosts::name_of(ThreadId id) const {
  const HostThread& thread = *threads_[id];
  std::string name = fmt::format("process {}", thread.process);
  if (thread.number > 0) name += fmt::format(", thread {}", thread.number);
  return name;
}

std::string Hosts::doing(ThreadId id) const {
  const HostThread& thread = *threads_[id];
  const HostProcess& process = processes_[thread.process];
  switch (thread.state) {
    case HostThread::State::ended:
      return "has ended";
    case HostThread::State::waiting:
      return thread.waits ? thread.waits() : "waits";
    case HostThread::State::yielding:
      if (thread.kind == Yield::lock) return "waits for a lock, a condition or another thread";
      return fmt::format("looks again and again at {}", looks_at(thread.looks_at));
    case HostThread::State::running:
    case HostThread::State::outside: {
      const SystemState now_is = state_of(process.pid, thread.system_id == 0 ? process.pid : thread.system_id);
      return now_is.sleeps ? "sleeps in a call of the system" : "computes, or waits in a loop without a call";
    }
    case HostThread::State::ready:
      return "could go on";
  }
  return "";
}

std::optional<ThreadId> Hosts::thread_for(std::uint32_t process, Rank npu) const {
  std::vector<ThreadId> all;
  std::vector<ThreadId> of_npu;
  for (ThreadId id = 0; id < threads_.size(); ++id) {
    const HostThread& thread = *threads_[id];
    if (thread.process != process || thread.serves || thread.state == HostThread::State::ended) continue;
    all.push_back(id);
    if (thread.npu == npu) of_npu.push_back(id);
  }
  if (all.size() == 1) return all.front();
  return of_npu.size() == 1 ? std::optional(of_npu.front()) : std::nullopt;
}

std::string Hosts::ended_processes() const {
  constexpr std::uint32_t most = 8;
  std::string text;
  std::uint32_t count = 0;
  for (std::uint32_t number = 0; number < processes_.size(); ++number) {
    if (!processes_[number].ended || ++count > most) continue;
    text += fmt::format("{}{}", count > 1 ? ", " : "", number);
  }
  if (count == 0) return "";
  return fmt::format("; process{} {}{} {} ended", count == 1 ? "" : "es", text, count > most ? ", …" : "",
                     count == 1 ? "has" : "have");
}

}  // namespace hcclsim::clients
