#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "clients/server/communicators/communicators.hpp"
#include "clients/server/core.hpp"
#include "clients/server/handles.hpp"

namespace hcclsim::clients {

/// Knows the memory that the peers of a communicator access directly: ranges, in which a program activates what is
/// mapped there, and windows of symmetric memory.
class PeerMemory {
 public:
  PeerMemory(Core& core, Handles& handles, const Communicators& communicators)
      : core_(core), handles_(handles), communicators_(communicators) {}

  /// Answers questions about ranges and windows.
  Result handle(ThreadId id, const Question& question);
  /// Whether peers access anything of the rank directly.
  [[nodiscard]] bool has_any(const ClientCommunicator& own) const;
  /// Whether peers access all of these bytes directly: in a window, or in activated memory, which may have been
  /// activated piece by piece.
  [[nodiscard]] bool is_active(const ClientCommunicator& own, std::uint64_t address, Bytes bytes) const;

 private:
  using Ranges = std::map<std::uint64_t, Bytes>;
  struct OfRank {
    Ranges ranges{};          // addresses that were set …
    Ranges active{};          // … those in them that peers access directly …
    Ranges window_bytes{};    // … and those of symmetric windows, which peers access, too
    std::size_t windows = 0;  // that it has registered so far

    [[nodiscard]] bool is_used(std::uint64_t address, Bytes bytes) const;
  };
  struct Window {
    std::uint64_t communicator = 0;  // its handle
    std::uint64_t address = 0;
    Bytes bytes = 0;
  };

  Result range(const ClientCommunicator& communicator, Call call, std::uint64_t address, Bytes bytes);
  Result begin_window(const ClientCommunicator& communicator, std::uint64_t handle, std::uint64_t address, Bytes bytes);
  [[nodiscard]] Result find_window(std::uint64_t handle, std::uint64_t address, Bytes bytes) const;
  Result end_window(ThreadId id, std::uint64_t number);

  Core& core_;
  Handles& handles_;
  const Communicators& communicators_;
  std::map<const ClientCommunicator*, OfRank> of_ranks_;
  std::map<std::uint64_t, Window> windows_;
  std::map<const CommunicatorGroup*, std::vector<Bytes>> window_sizes_;  // in the order in which ranks register them
};

}  // namespace hcclsim::clients
