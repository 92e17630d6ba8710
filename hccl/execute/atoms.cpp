#include "hccl/execute/atoms.hpp"

#include <algorithm>
#include <utility>

namespace hcclsim::hccl {
namespace {

/// Offsets at which a memory is cut, ascending, its two ends among them.
using Cuts = std::vector<Bytes>;

/// The cuts strictly inside offset … offset+length.
std::pair<Cuts::const_iterator, Cuts::const_iterator> inside(const Cuts& cuts, Bytes offset, Bytes length) {
  const auto first = std::upper_bound(cuts.begin(), cuts.end(), offset);
  return {first, std::lower_bound(first, cuts.end(), offset + length)};
}

/// Cuts `to` (a range from to_offset) wherever `from` (a range from from_offset) is cut. True if there were new ones.
bool copy_cuts(const Cuts& from, Bytes from_offset, Cuts& to, Bytes to_offset, Bytes length) {
  const auto [begin, end] = inside(from, from_offset, length);
  auto [known, known_end] = inside(to, to_offset, length);
  Cuts missing;
  for (auto cut = begin; cut != end; ++cut) {
    const Bytes wanted = *cut - from_offset + to_offset;
    while (known != known_end && *known < wanted) ++known;
    if (known == known_end || *known != wanted) missing.push_back(wanted);
  }
  if (missing.empty()) return false;
  const auto middle = static_cast<std::ptrdiff_t>(to.size());
  to.insert(to.end(), missing.begin(), missing.end());
  std::inplace_merge(to.begin(), to.begin() + middle, to.end());
  return true;
}

bool align(const Move& move, std::vector<Cuts>& cuts) {
  Cuts& source = cuts[move.source];
  Cuts& destination = cuts[move.destination];
  const bool forward = copy_cuts(source, move.source_offset, destination, move.destination_offset, move.length);
  return copy_cuts(destination, move.destination_offset, source, move.source_offset, move.length) || forward;
}

std::vector<Cuts> cuts_of(const MoveList& list) {
  std::vector<Cuts> cuts(list.memories.size());
  for (std::size_t memory = 0; memory < cuts.size(); ++memory) cuts[memory] = {0, list.memories[memory]};
  for (const Move& move : list.moves) {
    for (const Bytes end : {Bytes{0}, move.length}) {
      cuts[move.source].push_back(move.source_offset + end);
      cuts[move.destination].push_back(move.destination_offset + end);
    }
  }
  for (Cuts& of_memory : cuts) {
    std::sort(of_memory.begin(), of_memory.end());
    of_memory.erase(std::unique(of_memory.begin(), of_memory.end()), of_memory.end());
  }
  // Forward and backward in turn: a cut then travels along a whole chain of moves in one sweep.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Move& move : list.moves) changed = align(move, cuts) || changed;
    if (!changed) break;
    std::for_each(list.moves.rbegin(), list.moves.rend(), [&](const Move& move) { align(move, cuts); });
  }
  return cuts;
}

}  // namespace

AtomMoves cut_into_atoms(const MoveList& list) {
  const std::vector<Cuts> cuts = cuts_of(list);
  AtomMoves result;
  std::vector<std::size_t> first_atom(cuts.size());
  for (std::uint32_t memory = 0; memory < cuts.size(); ++memory) {
    first_atom[memory] = result.atoms.size();
    for (std::size_t i = 0; i + 1 < cuts[memory].size(); ++i) {
      result.atoms.push_back({memory, cuts[memory][i], cuts[memory][i + 1] - cuts[memory][i]});
    }
  }
  const auto atom_at = [&](std::uint32_t memory, Bytes offset) {
    const auto cut = std::lower_bound(cuts[memory].begin(), cuts[memory].end(), offset);
    return static_cast<std::uint32_t>(first_atom[memory] + static_cast<std::size_t>(cut - cuts[memory].begin()));
  };
  result.moves.reserve(list.moves.size());
  for (const Move& move : list.moves) {
    std::uint32_t destination = atom_at(move.destination, move.destination_offset);
    std::uint32_t source = atom_at(move.source, move.source_offset);
    for (Bytes done = 0; done < move.length; ++destination, ++source) {
      result.moves.push_back({destination, source, move.reduces});
      done += result.atoms[source].length;
    }
  }
  return result;
}

}  // namespace hcclsim::hccl
