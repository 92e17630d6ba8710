#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "hccl/check/program/interval_map.hpp"

/// What bytes of a buffer hold, for level L4: a tree of contributions (check/contributions.hpp, or up to rotation
/// check/symmetry/rotating_trees.hpp), and where in the payload it comes from.
namespace hcclsim::hccl {

/// A byte at offset o holds byte o + shift of the contributions in the tree.
template <typename Tree>
struct Content {
  Tree tree{};  // never written
  std::int64_t shift = 0;
  friend bool operator==(const Content&, const Content&) = default;
};

template <typename Tree>
struct Piece {
  Bytes begin = 0;
  Bytes length = 0;
  Content<Tree> content;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Calls change(content) for all contents of a memory in the range of a piece.
template <typename Tree, typename Change>
void change_under(IntervalMap<Content<Tree>>& memory, const Piece<Tree>& piece, const Change& change) {
  const Bytes end = piece.begin + piece.length;
  memory.cut(end);
  for (std::size_t i = memory.cut(piece.begin); i < memory.count() && memory.begin(i) < end; ++i) {
    change(memory.state(i));
  }
}

template <typename Tree>
void put(IntervalMap<Content<Tree>>& memory, const Piece<Tree>& piece) {
  change_under(memory, piece, [&](Content<Tree>& content) { content = piece.content; });
}

/// Appends a piece to its neighbours; it is merged with the last one if both hold the same.
template <typename Tree>
void append_joined(std::vector<Piece<Tree>>& pieces, const Piece<Tree>& piece) {
  if (!pieces.empty() && pieces.back().content == piece.content) {
    pieces.back().length += piece.length;
  } else {
    pieces.push_back(piece);
  }
}

}  // namespace hcclsim::hccl
