#include "hccl/ps/placement.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::hccl {

std::uint32_t server_of_key(std::uint32_t key, std::uint32_t servers) { return key % servers; }

std::vector<std::uint64_t> rows_on_servers(std::uint64_t rows, std::uint32_t servers) {
  std::vector<std::uint64_t> all(servers, rows / servers);
  for (std::uint32_t server = 0; server < rows % servers; ++server) ++all[server];
  return all;
}

std::vector<PsPiece> place(std::span<const PsParameter> parameters, std::uint32_t servers) {
  if (servers == 0) internal_error("parameters are placed on no server");
  std::vector<PsPiece> pieces;
  for (std::uint32_t key = 0; key < parameters.size(); ++key) {
    const PsParameter& parameter = parameters[key];
    if (parameter.rows == 0) {
      pieces.push_back({key, server_of_key(key, servers), 0, parameter.elements});
      continue;
    }
    const std::vector<std::uint64_t> rows = rows_on_servers(parameter.rows, servers);
    std::uint64_t first = 0;
    for (std::uint32_t server = 0; server < servers && rows[server] > 0; ++server) {
      const std::uint64_t elements = rows[server] * parameter.width();
      pieces.push_back({key, server, first, elements});
      first += elements;
    }
  }
  return pieces;
}

std::vector<PsMove> moves(std::span<const PsPiece> before, std::span<const PsPiece> after,
                          std::span<const std::uint32_t> server_now) {
  std::vector<PsMove> all;
  for (const PsPiece& old : before) {
    for (const PsPiece& piece : after) {
      if (piece.key != old.key || piece.server == server_now[old.server]) continue;
      const std::uint64_t begin = std::max(old.first, piece.first);
      const std::uint64_t end = std::min(old.first + old.elements, piece.first + piece.elements);
      if (begin < end) all.push_back({old.key, old.server, piece.server, end - begin});
    }
  }
  return all;
}

}  // namespace hcclsim::hccl
