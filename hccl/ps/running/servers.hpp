#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hccl/ps/placement.hpp"
#include "hccl/ps/running/members.hpp"
#include "hccl/ps/running/timeline.hpp"
#include "hccl/ps/simulation.hpp"

/// The servers of a running job by their ranks: which pieces they have, and what keeps them busy. A server does one
/// addition, update or read at a time.
namespace hcclsim::hccl {

class PsServers {
 public:
  PsServers(const PsOptions& options, PsTimeline& timeline, const PsMembers& members)
      : options_(options), timeline_(timeline), members_(members) {}

  /// Places all parameters on so many servers; `server_now`: as of moves().
  void place(std::span<const std::uint32_t> server_now, std::uint32_t servers);
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(servers_.size()); }
  [[nodiscard]] const std::vector<PsPiece>& pieces() const { return pieces_; }
  [[nodiscard]] const PsPiece& piece(std::uint32_t piece) const { return pieces_[piece]; }
  [[nodiscard]] const PsParameter& parameter_of(std::uint32_t piece) const {
    return options_.parameters[pieces_[piece].key];
  }
  /// The pieces of a server that are pushed and pulled.
  [[nodiscard]] const std::vector<std::uint32_t>& pieces_of(std::uint32_t server) const {
    return servers_[server].pieces;
  }
  /// The node that has a piece.
  [[nodiscard]] std::uint32_t node_of(std::uint32_t piece) const { return members_.server(pieces_[piece].server); }
  /// Which of these rows (ascending) of a table each server has.
  [[nodiscard]] std::vector<std::span<const std::uint64_t>> rows_by_server(std::uint32_t key,
                                                                           std::span<const std::uint64_t> rows) const;

  /// So many bytes pass through the server's memory when it is free; then `done`.
  void work(std::uint32_t server, std::uint64_t bytes, std::function<void()> done);
  /// What it was going to do is forgotten.
  void forget_work(std::uint32_t server) { servers_[server].free_at = timeline_.now(); }
  /// … of all servers, which have their weights.
  void go_back();
  /// Of additions, updates and reads.
  [[nodiscard]] Seconds busy(std::uint32_t server) const { return servers_[server].busy; }
  /// Bytes of the pieces of a server.
  [[nodiscard]] Bytes placed(std::uint32_t server) const;

  /// A server that has come back has its weights only when they are restored.
  void set_restoring(std::uint32_t server, bool restoring) { servers_[server].restoring = restoring; }
  [[nodiscard]] bool any_restoring() const { return std::ranges::any_of(servers_, &Server::restoring); }
  /// Whether the server that has a piece answers.
  [[nodiscard]] bool usable(std::uint32_t piece) const {
    return members_.alive(node_of(piece)) && !servers_[pieces_[piece].server].restoring;
  }

 private:
  struct Server {
    bool restoring = false;
    Seconds free_at = 0;
    Seconds busy = 0;
    std::vector<std::uint32_t> pieces;
  };

  const PsOptions& options_;
  PsTimeline& timeline_;
  const PsMembers& members_;
  std::vector<Server> servers_;
  std::vector<PsPiece> pieces_;
};

}  // namespace hcclsim::hccl
