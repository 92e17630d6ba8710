#include "hccl/ps/running/servers.hpp"

#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {

void PsServers::place(std::span<const std::uint32_t> server_now, std::uint32_t servers) {
  const std::vector<Server> before = std::exchange(servers_, std::vector<Server>(servers));
  for (std::uint32_t server = 0; server < server_now.size(); ++server) {
    if (server_now[server] != gone) servers_[server_now[server]].busy = before[server].busy;
  }
  pieces_ = hccl::place(options_.parameters, servers);
  for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
    if (!options_.cached(pieces_[piece].key)) servers_[pieces_[piece].server].pieces.push_back(piece);
  }
}

std::vector<std::span<const std::uint64_t>> PsServers::rows_by_server(std::uint32_t key,
                                                                      std::span<const std::uint64_t> rows) const {
  std::vector<std::span<const std::uint64_t>> of_servers(servers_.size());
  const std::uint64_t width = options_.parameters[key].width();
  if (width == 0) internal_error("parameter {} is no table", key);
  for (const PsPiece& piece : pieces_) {
    if (piece.key != key) continue;
    of_servers[piece.server] = {std::ranges::lower_bound(rows, piece.first / width),
                                std::ranges::lower_bound(rows, (piece.first + piece.elements) / width)};
  }
  return of_servers;
}

void PsServers::work(std::uint32_t server, std::uint64_t bytes, std::function<void()> done) {
  Server& me = servers_[server];
  const Seconds time = static_cast<double>(bytes) / options_.costs.server_bandwidth;
  const std::uint32_t node = members_.server(server);
  me.free_at = timeline_.end_of_work(node, std::max(me.free_at, timeline_.now()), time, false);
  me.busy += time;
  timeline_.at(me.free_at, node, std::move(done));
}

void PsServers::go_back() {
  for (Server& server : servers_) {
    server.free_at = timeline_.now();
    server.restoring = false;
  }
}

Bytes PsServers::placed(std::uint32_t server) const {
  Bytes bytes = 0;
  for (const PsPiece& piece : pieces_) bytes += piece.server == server ? piece.bytes() : 0;
  return bytes;
}

}  // namespace hcclsim::hccl
