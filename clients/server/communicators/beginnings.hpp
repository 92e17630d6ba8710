#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "clients/server/communicators/communicators.hpp"
#include "clients/server/core.hpp"
#include "clients/server/devices/devices.hpp"
#include "clients/server/meetings.hpp"

namespace hcclsim::clients {

/// Begins communicators: from root infos, rank tables, lists of devices and other communicators. Ranks of several
/// threads wait for each other.
class Beginnings {
 public:
  /// Ranks wait for others for `timeout` seconds.
  Beginnings(Core& core, const Devices& devices, Meetings& meetings, Communicators& communicators, Seconds timeout)
      : core_(core), devices_(devices), meetings_(meetings), communicators_(communicators), timeout_(timeout) {}

  /// Answers questions by which communicators begin.
  std::optional<Result> handle(ThreadId id, const Question& question);
  /// Begins communicators of several ranks at once, each as the question says for the NPU that was set then; the answer
  /// has their handles.
  std::optional<Result> begin_together(ThreadId id, const std::vector<std::pair<Question, std::optional<Rank>>>& all);

 private:
  struct Beginning {
    std::string meeting;
    std::string name;  // of the communicator, unless the settings have one
    Rank rank = 0;
    Rank ranks = 0;
    std::string settings{};  // HcclCommConfig, or nothing
    std::uint64_t root = 0;  // number of the root info; 0: it begins from something else
    const char* function = "";
    std::vector<Rank> npus{};  // of all ranks, if they are known
    Rank npu = 0;              // of this one
  };
  using Begun = std::function<void(Seconds date, Result result)>;

  /// A rank begins a communicator, and its thread waits until all have come.
  std::optional<Result> begin(ThreadId id, const Question& question);
  /// What a question is about, for the NPU that is set; why it cannot be, status 0: it can.
  Result prepare(ThreadId id, std::optional<Rank> npu, const Question& question, Beginning& beginning);
  Result read_root(const Question& question, Beginning& beginning) const;
  Result read_table(const Question& question, Beginning& beginning) const;
  Result read_sub(ThreadId id, const Question& question, Beginning& beginning) const;
  /// The rank comes; `begun` is called when all have, with its handle, or when it has waited too long.
  void join(ThreadId id, const Beginning& beginning, const Begun& begun);
  Result begin_all(ThreadId id, const Question& question);
  /// Throws Error(simulated_failure, "client") for guests that do not fit together.
  std::shared_ptr<const CommunicatorGroup> form(const Beginning& beginning, const std::map<Rank, Guest>& guests);
  std::shared_ptr<const CommunicatorGroup> make_group(std::string name, std::vector<Rank> npus,
                                                      std::vector<std::uint32_t> processes,
                                                      const std::string& settings);

  Core& core_;
  const Devices& devices_;
  Meetings& meetings_;
  Communicators& communicators_;
  Seconds timeout_;
  std::map<std::string, std::shared_ptr<const CommunicatorGroup>> forming_;  // by meeting, while handles are given out
  std::map<std::string, std::uint64_t> instances_;                           // of a rank in a meeting's name
  std::set<std::uint64_t> used_roots_;                                       // that have made a communicator
  std::uint64_t roots_ = 0;
  std::uint32_t groups_ = 0;
};

}  // namespace hcclsim::clients
