#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "clients/server/communication/communication.hpp"
#include "clients/server/communicators/beginnings.hpp"
#include "clients/server/core.hpp"
#include "clients/server/devices/streams.hpp"

namespace hcclsim::clients {

/// Keeps the calls of threads from HcclGroupStart to HcclGroupEnd, and carries out others at once.
class CallGroups {
 public:
  CallGroups(Core& core, Streams& streams, Beginnings& beginnings, Communication& communication)
      : core_(core), streams_(streams), beginnings_(beginnings), communication_(communication) {}

  /// Answers questions that may be part of a group: to communicate, and by which communicators begin.
  std::optional<Result> handle(ThreadId id, const Question& question);
  /// A process is gone. Throws Error(simulated_failure, "client") if it has not issued the calls of a group.
  void end_process(std::uint32_t process) const;

 private:
  struct Group {
    std::uint32_t depth = 0;  // of groups in groups
    std::vector<Question> calls{};
    std::vector<std::pair<Question, std::optional<Rank>>> beginnings{};  // of communicators, and the NPU that was set
  };

  /// Keeps a call until the group ends.
  Result keep(ThreadId id, Group& group, Question question);
  std::optional<Result> end(ThreadId id);

  Core& core_;
  Streams& streams_;
  Beginnings& beginnings_;
  Communication& communication_;
  std::map<ThreadId, Group> groups_;
};

}  // namespace hcclsim::clients
