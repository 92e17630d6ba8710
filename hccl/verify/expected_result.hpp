#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/operation.hpp"

/// The result of an operation, described without any schedule: which elements of which ranks are reduced or copied, and
/// which ranks have the result.
namespace hcclsim::hccl {

/// Elements of a rank's buffer from `offset` on.
struct RankElements {
  Rank rank = 0;
  std::uint64_t offset = 0;
};

/// Elements of the result: the reduction of what the sources hold in the beginning (in `input`; in place, in `output`),
/// or a copy of the only source, which the holders have in `output` in the end.
struct ResultPiece {
  std::uint64_t elements = 0;
  std::vector<RankElements> sources;
  std::vector<RankElements> holders;
};

/// The whole result; no piece is empty. Every element is in the sources of at most one piece.
[[nodiscard]] std::vector<ResultPiece> expected_result(const Operation& operation);

}  // namespace hcclsim::hccl
