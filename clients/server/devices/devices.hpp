#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "clients/server/core.hpp"

namespace hcclsim::clients {

/// Knows the devices as processes have them: which NPUs they have set, and what these may do.
class Devices {
 public:
  explicit Devices(Core& core);

  /// Answers questions about devices.
  std::optional<Result> handle(ThreadId id, const Question& question);

  /// How many devices a server has.
  [[nodiscard]] std::uint32_t devices_of(std::uint32_t server) const;
  /// The NPU that is this device of the server, if there is one.
  [[nodiscard]] std::optional<Rank> npu_of(std::uint32_t server, std::uint64_t device) const;
  /// Whether the process may copy from one NPU to the other.
  [[nodiscard]] bool have_access(std::uint32_t process, Rank npu, Rank other) const;
  /// Whether sums that are too large become the largest number on the NPU, not infinity.
  [[nodiscard]] bool saturates(Rank npu) const { return saturating_.contains(npu); }

  /// Called when a process gives up an NPU, with all that it had there.
  std::function<void(std::uint32_t process, Rank npu)> on_release{};

 private:
  Result set_device(ThreadId id, std::uint64_t device, bool counts);
  Result topology(ThreadId id, const Question& question);
  Result peer_access(ThreadId id, const Question& question);
  /// Ends all that the process has on the NPU, if this has been asked for as often as the NPU was set, or by force.
  void release(std::uint32_t process, Rank npu, bool by_force);

  Core& core_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Rank> npu_of_device_;  // server, device
  std::map<std::pair<std::uint32_t, Rank>, std::uint64_t> used_;           // how often a process has set an NPU
  std::set<std::tuple<std::uint32_t, Rank, Rank>> peers_;  // of a process: NPUs with access to each other
  std::set<Rank> saturating_;
};

}  // namespace hcclsim::clients
