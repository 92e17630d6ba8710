#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hccl/check/contents.hpp"
#include "hccl/check/symmetry/rotating_trees.hpp"
#include "hccl/check/symmetry/symmetric_accesses.hpp"
#include "hccl/check/symmetry/symmetric_checks.hpp"

namespace hcclsim::hccl {
namespace {

/// Observes the lockstep of all ranks.
class RotatingMeaning : public ContentsSearch<RotatingMeaning, RotatingTrees> {
 public:
  RotatingMeaning(const TaskProgram& program, const Rotation& rotation, const Contract& contract, Findings& findings)
      : ContentsSearch(program, borders_of_accesses(program, rotation), contract, RotatingTrees(rotation), findings),
        rotation_(rotation) {}

  using ContentsSearch::perform;
  /// All images of a rank do the task. One of them changes the memory of a representative, with bytes from the memory
  /// of a rank `by` turns further. These are the image of what the representative of that rank holds at the image of
  /// the source.
  void perform(const TaskId& id, const ProgramTask& task, const Movement& movement) {
    const Rank source = source_rank(task, id.rank);
    const Rank destination = destination_rank(task, id.rank);
    const Rank from = rotation_.representative(source);
    const Rank to = rotation_.representative(destination);
    const Rank by = rotation_.from_to(rotation_.turn_of(destination), rotation_.turn_of(source));
    rotation_.turn(movement.source, rotation_.back(rotation_.turn_of(source)), sources_);
    rotation_.turn(movement.destination, rotation_.back(rotation_.turn_of(destination)), destinations_);
    // Both lists have the same length and are walked together.
    auto destination_piece = destinations_.begin();
    for (ByteRange piece : sources_) {
      while (piece.length > 0) {
        ByteRange& target = *destination_piece;
        const Bytes length = std::min(piece.length, target.length);
        move({from, {piece.buffer, piece.offset, length}}, {to, {target.buffer, target.offset, length}}, by, id,
             reduces(task.kind));
        piece.offset += length;
        piece.length -= length;
        target.offset += length;
        target.length -= length;
        if (target.length == 0) ++destination_piece;
      }
    }
  }

  std::vector<Piece> output(Rank rank, Bytes offset, Bytes length) {
    std::vector<ByteRange> images;
    const Rank turns = rotation_.turn_of(rank);
    rotation_.turn({Buffer::output, offset, length}, rotation_.back(turns), images);
    std::vector<Piece> joined;
    Bytes begin = offset;
    for (const ByteRange& image : images) {
      take(rotation_.representative(rank), image, turns, begin);
      for (const Piece& piece : taken_) append_joined(joined, piece);
      begin += image.length;
    }
    return joined;
  }

  std::string wrong_ranks(Tree tree, const Holding& holding) {
    // A few contributions, doubled again and again, cannot be counted one by one.
    if (trees().size(tree) > std::uint64_t{4} * program_.ranks) {
      return fmt::format("hold {} contributions", trees().size(tree));
    }
    std::vector<std::uint64_t> counts(program_.ranks, 0);
    for (const Rank rank : trees().ranks_in(tree)) ++counts[rank];
    return wrong_multiplicities(counts, holding);
  }

 private:
  void move(const RankBytes& from, const RankBytes& to, Rank by, const TaskId& id, bool reducing) {
    take(from.rank, from.range, by, to.range.offset);
    for (const Piece& piece : taken_) {
      const Bytes offset = from.range.offset + (piece.begin - to.range.offset);
      bring(piece, {from.rank, {from.range.buffer, offset, piece.length}}, to.rank, to.range.buffer, id, reducing);
    }
  }

  /// Puts into taken_ what the image of a rank by `by` turns holds at the image of a range of that rank, as if it were
  /// at `at`.
  void take(Rank rank, const ByteRange& range, Rank by, Bytes at) {
    taken_.clear();
    visit(rank, range, [&](Bytes begin, Bytes length, const Content& content) {
      if (content.tree.shape < RotatingTrees::rank_0) {
        taken_.push_back({at, length, content});
        at += length;
        return;
      }
      const Tree tree = trees().turned(content.tree, by);
      const Bytes place = begin + static_cast<Bytes>(content.shift);
      rotation_.turn_places({range.buffer, place, length}, by, places_);
      for (const ByteRange& turned : places_) {
        taken_.push_back({at, turned.length, {tree, static_cast<std::int64_t>(turned.offset - at)}});
        at += turned.length;
      }
    });
  }

  const Rotation& rotation_;
  std::vector<Piece> taken_;
  std::vector<ByteRange> sources_;
  std::vector<ByteRange> destinations_;
  std::vector<ByteRange> places_;
};

}  // namespace

std::optional<ReductionOrder> check_meaning_by_rotation(const TaskProgram& program, const Rotation& rotation,
                                                        const CheckOptions& options, Findings& meaning,
                                                        Findings& order) {
  const Contract contract(program);
  RotatingMeaning search(program, rotation, contract, meaning);
  return check_contents(search, program, contract, options, meaning, order);
}

}  // namespace hcclsim::hccl
