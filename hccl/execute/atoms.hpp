#pragma once

#include <cstdint>
#include <vector>

#include "hccl/execute/moves.hpp"

/// Cuts all memories into pieces, the *atoms*, such that every move covers whole atoms, with no more cuts than
/// necessary. Where a move is cut on one side it is cut at the same place on the other side, so a move becomes several
/// moves between atoms of equal length.
namespace hcclsim::hccl {

struct Atom {
  std::uint32_t memory = 0;
  Bytes offset = 0;
  Bytes length = 0;
};

struct AtomMove {
  std::uint32_t destination = 0;  ///< numbers of atoms
  std::uint32_t source = 0;
  bool reduces = false;
};

struct AtomMoves {
  std::vector<Atom> atoms;      ///< by memory and offset; together they are all bytes of all memories
  std::vector<AtomMove> moves;  ///< in the order of the list
};

[[nodiscard]] AtomMoves cut_into_atoms(const MoveList& list);

}  // namespace hcclsim::hccl
