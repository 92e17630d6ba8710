#include "hccl/check/symmetry/symmetric_meaning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hccl/check/contract.hpp"
#include "hccl/check/meaning.hpp"
#include "hccl/check/program/contents.hpp"
#include "hccl/check/program/task_run.hpp"
#include "hccl/check/reduction_order.hpp"
#include "hccl/check/symmetry/rotating_trees.hpp"
#include "hccl/check/symmetry/symmetric_accesses.hpp"

namespace hcclsim::hccl {
namespace {

using RotatingTree = RotatingTrees::Tree;
using RotatingContent = hccl::Content<RotatingTree>;
using RotatingPiece = hccl::Piece<RotatingTree>;

/// Observes the lockstep of all ranks; carries along what the memory of the first ranks holds.
class RotatingMeaning {
 public:
  RotatingMeaning(const TaskProgram& program, const Rotation& rotation, const Contract& contract, Findings& findings)
      : program_(program), rotation_(rotation), findings_(findings), trees_(rotation) {
    for (const std::vector<Bytes>& of_buffer : borders_of_accesses(program, rotation)) {
      memories_.emplace_back(of_buffer, RotatingContent{});
    }
    for (Rank rank = 0; rank < rotation.period(); ++rank) {
      for (const Holding& held : contract.initial(rank)) {
        put(memory(rank, held.buffer), {held.offset, held.length, {trees_.of(rank), held.shift()}});
      }
    }
  }

  void enter(Rank /*rank*/, const ProgramPart* /*begin*/, const ProgramPart* /*end*/) {}
  void leave(Rank /*rank*/) {}

  void perform(std::uint32_t chain, std::uint32_t number, const ProgramTask& task) {
    if (task.kind == TaskKind::post || task.kind == TaskKind::wait) return;
    for (const Movement& movement : program_.movements_of(task)) {
      perform(program_.task_id(chain, number), task, movement);
    }
  }

  /// What `rank` holds in a range of `output`, equal neighbours in one piece.
  std::vector<RotatingPiece> output(Rank rank, Bytes offset, Bytes length) {
    std::vector<ByteRange> images;
    const Rank turns = rotation_.turn_of(rank);
    rotation_.turn({Buffer::output, offset, length}, rotation_.back(turns), images);
    std::vector<RotatingPiece> joined;
    Bytes begin = offset;
    for (const ByteRange& image : images) {
      take(rotation_.representative(rank), image, turns, begin);
      for (const RotatingPiece& piece : taken_) append_joined(joined, piece);
      begin += image.length;
    }
    return joined;
  }

  RotatingTrees& trees() { return trees_; }

 private:
  IntervalMap<RotatingContent>& memory(Rank rank, Buffer buffer) { return memories_[memory_of(rank, buffer)]; }

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

  void move(const RankBytes& from, const RankBytes& to, Rank by, const TaskId& id, bool reducing) {
    take(from.rank, from.range, by, to.range.offset);
    for (RotatingPiece& piece : taken_) {
      if (piece.content.tree.shape == RotatingTrees::undefined) {
        const Bytes offset = from.range.offset + (piece.begin - to.range.offset);
        find_undefined(id, {from.rank, {from.range.buffer, offset, piece.length}});
        piece.content.tree = {RotatingTrees::mixed, 0};
      }
      if (reducing) {
        reduce(piece, id, {to.rank, {to.range.buffer, piece.begin, piece.length}});
      } else {
        put(memory(to.rank, to.range.buffer), piece);
      }
    }
  }

  /// Puts into taken_ what the image of a rank by `by` turns holds at the image of a range of that rank, as if it were
  /// at `at`.
  void take(Rank rank, const ByteRange& range, Rank by, Bytes at) {
    taken_.clear();
    IntervalMap<RotatingContent>& from = memory(rank, range.buffer);
    const Bytes end = range.offset + range.length;
    from.cut(end);
    for (std::size_t i = from.cut(range.offset); i < from.count() && from.begin(i) < end; ++i) {
      const RotatingContent& content = from.state(i);
      const Bytes length = from.end(i) - from.begin(i);
      if (content.tree.shape < RotatingTrees::rank_0) {
        taken_.push_back({at, length, content});
        at += length;
        continue;
      }
      const RotatingTree tree = trees_.turned(content.tree, by);
      const Bytes place = from.begin(i) + static_cast<Bytes>(content.shift);
      rotation_.turn_places({range.buffer, place, length}, by, places_);
      for (const ByteRange& turned : places_) {
        taken_.push_back({at, turned.length, {tree, static_cast<std::int64_t>(turned.offset - at)}});
        at += turned.length;
      }
    }
  }

  void reduce(const RotatingPiece& piece, const TaskId& id, const RankBytes& bytes) {
    change_under(memory(bytes.rank, bytes.range.buffer), piece, [&](RotatingContent& content) {
      if (content.tree.shape == RotatingTrees::undefined) {
        find_undefined(id, bytes);
        content = {{RotatingTrees::mixed, 0}, 0};
      } else if (content.shift != piece.content.shift && content.tree.shape != RotatingTrees::mixed &&
                 piece.content.tree.shape != RotatingTrees::mixed) {
        find_offset(id, bytes, content.shift, piece.content.shift);
        content = {{RotatingTrees::mixed, 0}, 0};
      } else {
        content.tree = trees_.reduce(content.tree, piece.content.tree);
      }
    });
  }

  void find_undefined(const TaskId& id, const RankBytes& bytes) {
    if (!findings_.wanted()) return;
    findings_.keep({"undefined",
                    fmt::format("{}, or the same of another rank, reads {} {}+{} of rank {}, which were never written",
                                program_.describe(id), name_of(bytes.range.buffer), bytes.range.offset,
                                bytes.range.length, bytes.rank),
                    {bytes.rank},
                    {id},
                    {bytes}});
  }

  void find_offset(const TaskId& id, const RankBytes& bytes, std::int64_t held, std::int64_t came) {
    if (!findings_.wanted()) return;
    const auto begin = static_cast<std::int64_t>(bytes.range.offset);
    findings_.keep(
        {"offset",
         fmt::format("{}, or the same of another rank, reduces byte {} of the payload into byte {} at rank {}",
                     program_.describe(id), begin + came, begin + held, bytes.rank),
         {bytes.rank},
         {id},
         {bytes}});
  }

  const TaskProgram& program_;
  const Rotation& rotation_;
  Findings& findings_;
  RotatingTrees trees_;
  std::vector<IntervalMap<RotatingContent>> memories_;  // by memory_of
  std::vector<RotatingPiece> taken_;
  std::vector<ByteRange> sources_;
  std::vector<ByteRange> destinations_;
  std::vector<ByteRange> places_;
};

bool of_right_ranks(RotatingTrees::Tree tree, const Holding& holding, RotatingTrees& trees) {
  return holding.only ? tree == trees.of(*holding.only) : trees.complete(tree);
}

bool is_right(const RotatingPiece& piece, const Holding& holding, RotatingTrees& trees) {
  const RotatingContent& content = piece.content;
  return content.tree.shape != RotatingTrees::undefined && content.tree.shape != RotatingTrees::mixed &&
         of_right_ranks(content.tree, holding, trees) && content.shift == holding.shift();
}

/// What is wrong with a piece of the result that is not right. Takes time: it counts the contributions of every rank.
std::string problem_of(const RotatingPiece& piece, const Holding& holding, RotatingTrees& trees, Rank ranks) {
  const RotatingContent& content = piece.content;
  if (content.tree.shape == RotatingTrees::undefined) return "hold nothing";
  if (content.tree.shape == RotatingTrees::mixed) return "hold what was reduced from wrong bytes";
  if (of_right_ranks(content.tree, holding, trees)) {
    return wrong_place(piece.begin, piece.length, content.shift, holding);
  }
  // A few contributions, doubled again and again, cannot be counted one by one.
  if (trees.size(content.tree) > std::uint64_t{4} * ranks) {
    return fmt::format("hold {} contributions", trees.size(content.tree));
  }
  std::vector<std::uint64_t> counts(ranks, 0);
  for (const Rank rank : trees.ranks_in(content.tree)) ++counts[rank];
  return wrong_multiplicities(counts, holding);
}

void check_result(RotatingMeaning& search, const TaskProgram& program, const Contract& contract, Findings& findings) {
  for (Rank rank = 0; rank < program.period; ++rank) {
    for (const Holding& holding : contract.required(rank)) {
      for (const RotatingPiece& piece : search.output(rank, holding.offset, holding.length)) {
        if (is_right(piece, holding, search.trees()) || !findings.wanted()) continue;
        findings.keep({"contribution",
                       fmt::format("output {}+{} of rank {} {}", piece.begin, piece.length, rank,
                                   problem_of(piece, holding, search.trees(), program.ranks)),
                       {rank},
                       {},
                       {{rank, {Buffer::output, piece.begin, piece.length}}}});
      }
    }
  }
}

std::vector<RotatingPiece> result_of(RotatingMeaning& search, const Contract& contract, Rank rank) {
  std::vector<RotatingPiece> pieces;
  for (const Holding& holding : contract.required(rank)) {
    for (const RotatingPiece& piece : search.output(rank, holding.offset, holding.length)) pieces.push_back(piece);
  }
  return pieces;
}

ReductionOrder order_of(RotatingMeaning& search, const TaskProgram& program, const Contract& contract) {
  OrderCollector collector(program, contract.all_end_alike());
  const std::vector<RotatingPiece> first = result_of(search, contract, 0);
  const auto collect = [&](const std::vector<RotatingPiece>& pieces) {
    collector.next_rank();
    for (const RotatingPiece& piece : pieces) {
      const RotatingTree tree = piece.content.tree;
      collector.piece(piece.begin, piece.length, search.trees().signature(tree), search.trees().depth(tree));
    }
  };
  collect(first);
  if (contract.all_end_alike()) {
    // If the first image of rank 0 ends like rank 0, then the second like the first, and so on; and so do the images of
    // the other ranks that stand for all, if these end like rank 0.
    bool alike = true;
    for (Rank rank = 1; rank <= program.period && alike; ++rank) {
      const std::vector<RotatingPiece> other = result_of(search, contract, rank);
      alike = std::equal(first.begin(), first.end(), other.begin(), other.end());
    }
    if (alike) return collector.order();
    collector.ranks_differ();
  }
  for (Rank rank = 1; rank < program.ranks; ++rank) collect(result_of(search, contract, rank));
  return collector.order();
}

}  // namespace

std::optional<ReductionOrder> check_meaning_by_rotation(const TaskProgram& program, const Rotation& rotation,
                                                        const CheckOptions& options, Findings& meaning,
                                                        Findings& order) {
  const Contract contract(program);
  RotatingMeaning search(program, rotation, contract, meaning);
  TaskRun<RotatingMeaning>(program, search).run();
  check_result(search, program, contract, meaning);
  if (!meaning.empty()) return {};
  const ReductionOrder found = order_of(search, program, contract);
  check_order(program, found, options, order);
  return found;
}

}  // namespace hcclsim::hccl
