#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "clients/server/core.hpp"
#include "clients/server/devices/streams.hpp"
#include "clients/server/handles.hpp"

namespace hcclsim::clients {

/// Functions of the host are tasks of streams: a thread of the program asks for those that have come, and runs them.
class HostFunctions {
 public:
  HostFunctions(Core& core, Handles& handles, Streams& streams) : core_(core), handles_(handles), streams_(streams) {}

  /// Answers questions about functions of the host, and about the threads that run them.
  std::optional<Result> handle(ThreadId id, const Question& question);

 private:
  struct HostFunction {
    std::uint64_t function = 0;
    std::uint64_t argument = 0;
    ClientStream* stream = nullptr;
    bool blocks = false;
  };
  /// Functions that have come for a thread of a process, and the thread that asks for them.
  struct Desk {
    std::deque<HostFunction> functions{};
    std::optional<ThreadId> waiting{};
    Deadlines::Number deadline = 0;
  };
  using DeskKey = std::pair<std::uint32_t, std::uint64_t>;  // process, and its number of a thread

  Result launch(ThreadId id, const Question& question);
  std::optional<Result> next(ThreadId id, const Question& question);
  void done(ThreadId id, std::uint64_t ticket);
  Result take(Desk& desk);
  void deliver(Desk& desk);

  Core& core_;
  Handles& handles_;
  Streams& streams_;
  std::map<DeskKey, Desk> desks_;
  std::map<std::uint64_t, std::uint64_t> subscribers_;  // of streams: a thread of the program
  std::map<std::uint64_t, ClientStream*> held_;         // tickets of functions: the stream that waits
};

}  // namespace hcclsim::clients
