#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clients/server/core.hpp"
#include "clients/server/handles.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/settings/config.hpp"

/// Communicators of the program, as their ranks have them.
namespace hcclsim::clients {

/// The same for all its ranks.
struct CommunicatorGroup {
  std::string name;
  std::uint32_t number = 0;
  std::vector<Rank> npus;  ///< of each rank
  std::vector<std::uint32_t> processes;
  hccl::Topology topology{};
  hccl::CommunicatorId id{};
  hccl::HcclConfig config{};
  Bytes window_bytes = 0;  ///< of all windows of a rank, at most

  [[nodiscard]] Rank ranks() const { return static_cast<Rank>(npus.size()); }
};

/// A rank's communicator.
struct ClientCommunicator {
  std::shared_ptr<const CommunicatorGroup> group;
  Rank rank = 0;
  std::uint32_t process = 0;
  bool destroyed = false;
  bool released = false;  ///< with its device, before the program has destroyed it
  bool suspended = false;

  [[nodiscard]] Rank npu() const { return group->npus[rank]; }
};

/// Keeps the communicators of ranks by their handles, from their beginning to their end.
class Communicators {
 public:
  Communicators(Core& core, Handles& handles) : core_(core), handles_(handles) {}

  /// Answers questions about communicators that are there.
  Result handle(ThreadId id, const Question& question);

  /// Adds a rank's communicator, which takes memory of its NPU: its handle, or a refusal if no memory is left.
  Result add(std::shared_ptr<const CommunicatorGroup> group, Rank rank, std::uint32_t process);
  /// That of a handle of the thread's process; null: none.
  [[nodiscard]] const ClientCommunicator* find(ThreadId id, std::uint64_t handle) const;
  /// That there is no such communicator.
  [[nodiscard]] static Result unknown(std::uint64_t handle);
  /// A process gives up an NPU, and its communicators there.
  void release(std::uint32_t process, Rank npu);
  /// HCCL_DETERMINISTIC as HcclSetConfig has left it; none: as the communicator has it.
  [[nodiscard]] std::optional<hccl::Determinism> determinism() const { return determinism_; }

 private:
  [[nodiscard]] Result status_of(ThreadId id, const std::string& name) const;
  /// Of a communicator that ended with its device, too.
  Result destroy(ThreadId id, std::uint64_t handle);
  void end(ClientCommunicator& communicator);

  Core& core_;
  Handles& handles_;
  std::map<std::uint64_t, ClientCommunicator> communicators_;  // by handle
  std::optional<hccl::Determinism> determinism_;
};

}  // namespace hcclsim::clients
