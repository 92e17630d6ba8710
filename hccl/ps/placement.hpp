#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"

/// Which server holds what. Every parameter that is trained with the servers has a key, its number among them. A dense
/// parameter is whole on the server (key mod servers); a table of embeddings is cut by rows over all servers, the first
/// (rows mod servers) of which have one row more. All data are fp32, on the servers and on the wire.
namespace hcclsim::hccl {

struct PsParameter {
  std::string name;
  std::uint32_t gradient = 0;  ///< production order
  std::uint64_t elements = 0;
  std::uint64_t rows = 0;  ///< of a table of embeddings; 0: it is dense

  [[nodiscard]] std::uint64_t width() const { return rows == 0 ? 0 : elements / rows; }
};

/// What one server has of one parameter.
struct PsPiece {
  std::uint32_t key = 0;
  std::uint32_t server = 0;
  std::uint64_t first = 0;  ///< its first element in the parameter
  std::uint64_t elements = 0;

  [[nodiscard]] Bytes bytes() const { return elements * sizeof(float); }
  bool operator==(const PsPiece&) const = default;
};

[[nodiscard]] std::uint32_t server_of_key(std::uint32_t key, std::uint32_t servers);
/// Rows of a table on each server.
[[nodiscard]] std::vector<std::uint64_t> rows_on_servers(std::uint64_t rows, std::uint32_t servers);

/// All pieces that have elements, key by key, those of a table in the order of its rows.
[[nodiscard]] std::vector<PsPiece> place(std::span<const PsParameter> parameters, std::uint32_t servers);

/// Elements that change their owner from one placement of the same parameters to another one. `server_now[s]`: the
/// server of the new placement that server s of the old one is; `gone` if it is none.
struct PsMove {
  std::uint32_t key = 0;
  std::uint32_t from = 0;  ///< server of the old placement
  std::uint32_t to = 0;    ///< server of the new one
  std::uint64_t elements = 0;
};
inline constexpr std::uint32_t gone = ~0U;
[[nodiscard]] std::vector<PsMove> moves(std::span<const PsPiece> before, std::span<const PsPiece> after,
                                        std::span<const std::uint32_t> server_now);

}  // namespace hcclsim::hccl
