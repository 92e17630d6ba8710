#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "clients/server/core.hpp"
#include "clients/server/meetings.hpp"

/// What processes say to each other by MPI: exchanges of bytes among all members of a communicator, and messages. They
/// take no simulated time of their own.
namespace hcclsim::clients {

class Processes {
 public:
  Processes(Core& core, Meetings& meetings) : core_(core), meetings_(meetings) {}

  std::optional<Result> handle(ThreadId id, const Question& question);

 private:
  struct Message {
    std::uint64_t source = 0;
    std::uint64_t tag = 0;
    std::string bytes{};
    Seconds date = 0;
  };
  struct Receiver {
    ThreadId thread = 0;
    std::uint64_t source = 0;
    std::uint64_t tag = 0;

    [[nodiscard]] bool takes(const Message& message) const {
      return (source == none || source == message.source) && (tag == none || tag == message.tag);
    }
  };
  struct Box {
    std::deque<Message> messages{};
    std::deque<Receiver> receivers{};
  };

  std::optional<Result> exchange(ThreadId id, const Question& question);
  static Result result_of(const Message& message) {
    return {.values = {message.source, message.tag}, .bytes = message.bytes};
  }

  Core& core_;
  Meetings& meetings_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Box> boxes_;  // by communicator and process
};

}  // namespace hcclsim::clients
