#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hccl/check/contract.hpp"
#include "hccl/check/findings.hpp"
#include "hccl/check/meaning.hpp"
#include "hccl/check/program/interval_map.hpp"
#include "hccl/check/program/task_run.hpp"
#include "hccl/check/reduction_order.hpp"

/// What bytes of memory hold, for levels L4 and L5: a tree of contributions, and where in the payload it comes from.
/// `Trees` is Contributions, or RotatingTrees for a program of which the first ranks are unrolled and stand for all.
namespace hcclsim::hccl {

/// Observes a run and tracks the contents of the memory of the unrolled ranks. `Search` derives from it and has these
/// functions for the tasks, and for the result of the run:
///
///     void perform(const TaskId& id, const ProgramTask& task, const Movement& movement);
///     // What a rank holds in a range of `output`, equal neighbours in one piece.
///     std::vector<Piece> output(Rank rank, Bytes offset, Bytes length);
///     // What is wrong with a tree that is not of the ranks of `holding`. This is slow: it counts contributions.
///     std::string wrong_ranks(Tree tree, const Holding& holding) const;
template <typename Search, typename Trees>
class ContentsSearch {
 public:
  using Tree = typename Trees::Tree;

  /// A byte at offset o holds byte o + shift of the contributions in the tree.
  struct Content {
    Tree tree = Trees::undefined;
    std::int64_t shift = 0;
    friend bool operator==(const Content&, const Content&) = default;
  };
  struct Piece {
    Bytes begin = 0;
    Bytes length = 0;
    Content content;
    friend bool operator==(const Piece&, const Piece&) = default;
  };

  ContentsSearch(const TaskProgram& program, const std::vector<std::vector<Bytes>>& borders, const Contract& contract,
                 Trees trees, Findings& findings)
      : program_(program), findings_(findings), trees_(std::move(trees)) {
    memories_.reserve(borders.size());
    for (const std::vector<Bytes>& of_memory : borders) memories_.emplace_back(of_memory, Content{});
    for (Rank rank = 0; rank < program.unrolled(); ++rank) {
      for (const Holding& held : contract.initial(rank)) {
        put(memory(rank, held.buffer), {held.offset, held.length, {trees_.of(rank), held.shift()}});
      }
    }
  }

  void enter(Rank /*rank*/, const ProgramPart* /*begin*/, const ProgramPart* /*end*/) {}
  void leave(Rank /*rank*/) {}
  void perform(std::uint32_t chain, std::uint32_t number, const ProgramTask& task) {
    if (is_notify(task.kind)) return;
    for (const Movement& movement : program_.movements_of(task)) {
      static_cast<Search&>(*this).perform(program_.task_id(chain, number), task, movement);
    }
  }

  Trees& trees() { return trees_; }

 protected:
  IntervalMap<Content>& memory(Rank rank, Buffer buffer) { return memories_[memory_of(rank, buffer)]; }

  /// Calls visit(begin, length, content) for what is in a range of a memory.
  template <typename Visit>
  void visit(Rank rank, const ByteRange& range, const Visit& visit) {
    IntervalMap<Content>& from = memory(rank, range.buffer);
    const Bytes end = range.offset + range.length;
    from.cut(end);
    for (std::size_t i = from.cut(range.offset); i < from.count() && from.begin(i) < end; ++i) {
      visit(from.begin(i), from.end(i) - from.begin(i), from.state(i));
    }
  }

  /// Appends a piece to its neighbours; it is merged with the last one if both hold the same.
  static void append_joined(std::vector<Piece>& pieces, const Piece& piece) {
    if (!pieces.empty() && pieces.back().content == piece.content) {
      pieces.back().length += piece.length;
    } else {
      pieces.push_back(piece);
    }
  }

  /// A task puts a piece, which it has read at `source`, into a memory, or reduces it into what is there.
  void bring(Piece piece, const RankBytes& source, Rank to, Buffer buffer, const TaskId& id, bool reducing) {
    if (piece.content.tree == Trees::undefined) {
      find_undefined(id, source);
      piece.content.tree = Trees::mixed;
    }
    if (reducing) {
      reduce(piece, id, {to, {buffer, piece.begin, piece.length}});
    } else {
      put(memory(to, buffer), piece);
    }
  }

  const TaskProgram& program_;

 private:
  /// Calls change(content) for all contents of a memory in the range of a piece.
  template <typename Change>
  static void change_under(IntervalMap<Content>& memory, const Piece& piece, const Change& change) {
    const Bytes end = piece.begin + piece.length;
    memory.cut(end);
    for (std::size_t i = memory.cut(piece.begin); i < memory.count() && memory.begin(i) < end; ++i) {
      change(memory.state(i));
    }
  }

  static void put(IntervalMap<Content>& memory, const Piece& piece) {
    change_under(memory, piece, [&](Content& content) { content = piece.content; });
  }

  void reduce(const Piece& piece, const TaskId& id, const RankBytes& bytes) {
    change_under(memory(bytes.rank, bytes.range.buffer), piece, [&](Content& content) {
      if (content.tree == Trees::undefined) {
        find_undefined(id, bytes);
        content = {Trees::mixed, 0};
      } else if (content.shift != piece.content.shift && content.tree != Trees::mixed &&
                 piece.content.tree != Trees::mixed) {
        find_offset(id, bytes, content.shift, piece.content.shift);
        content = {Trees::mixed, 0};
      } else {
        content.tree = trees_.reduce(content.tree, piece.content.tree);
      }
    });
  }

  [[nodiscard]] bool stands_for_all() const { return program_.unrolled() < program_.ranks; }
  [[nodiscard]] std::string text_of(const TaskId& id) const {
    return program_.describe(id) + (stands_for_all() ? ", or the same of another rank," : "");
  }

  void find_undefined(const TaskId& id, const RankBytes& bytes) {
    if (!findings_.wanted()) return;
    findings_.keep({"undefined",
                    fmt::format("{} reads {} {}+{} of rank {}, which were never written", text_of(id),
                                name_of(bytes.range.buffer), bytes.range.offset, bytes.range.length, bytes.rank),
                    {bytes.rank},
                    {id},
                    {bytes}});
  }

  void find_offset(const TaskId& id, const RankBytes& bytes, std::int64_t held, std::int64_t came) {
    if (!findings_.wanted()) return;
    const auto begin = static_cast<std::int64_t>(bytes.range.offset);
    findings_.keep({"offset",
                    fmt::format("{} reduces byte {} of the payload into byte {}{}", text_of(id), begin + came,
                                begin + held, stands_for_all() ? fmt::format(" at rank {}", bytes.rank) : ""),
                    {bytes.rank},
                    {id},
                    {bytes}});
  }

  Findings& findings_;
  Trees trees_;
  std::vector<IntervalMap<Content>> memories_;  // by memory_of
};

template <typename Trees>
bool of_right_ranks(typename Trees::Tree tree, const Holding& holding, Trees& trees) {
  return holding.only ? tree == trees.of(*holding.only) : trees.complete(tree);
}

template <typename Piece, typename Trees>
bool is_right(const Piece& piece, const Holding& holding, Trees& trees) {
  const auto& [tree, shift] = piece.content;
  return tree != Trees::undefined && tree != Trees::mixed && of_right_ranks(tree, holding, trees) &&
         shift == holding.shift();
}

/// What is wrong with a wrong piece of the result.
template <typename Search>
std::string problem_of(const typename Search::Piece& piece, const Holding& holding, Search& search) {
  const auto& [tree, shift] = piece.content;
  if (tree == search.trees().undefined) return "hold nothing";
  if (tree == search.trees().mixed) return "hold what was reduced from wrong bytes";
  if (!of_right_ranks(tree, holding, search.trees())) return search.wrong_ranks(tree, holding);
  return wrong_place(piece.begin, piece.length, shift, holding);
}

template <typename Search>
void check_result(Search& search, const TaskProgram& program, const Contract& contract, Findings& findings) {
  for (Rank rank = 0; rank < program.unrolled(); ++rank) {
    for (const Holding& holding : contract.required(rank)) {
      for (const auto& piece : search.output(rank, holding.offset, holding.length)) {
        if (is_right(piece, holding, search.trees()) || !findings.wanted()) continue;
        findings.keep({"contribution",
                       fmt::format("output {}+{} of rank {} {}", piece.begin, piece.length, rank,
                                   problem_of(piece, holding, search)),
                       {rank},
                       {},
                       {{rank, {Buffer::output, piece.begin, piece.length}}}});
      }
    }
  }
}

template <typename Search>
auto result_of(Search& search, const Contract& contract, Rank rank) {
  std::vector<typename Search::Piece> pieces;
  for (const Holding& holding : contract.required(rank)) {
    for (const auto& piece : search.output(rank, holding.offset, holding.length)) pieces.push_back(piece);
  }
  return pieces;
}

/// The order in which the results of all ranks were reduced.
template <typename Search>
ReductionOrder order_of(Search& search, const TaskProgram& program, const Contract& contract) {
  OrderCollector collector(program, contract.all_end_alike());
  const auto first = result_of(search, contract, 0);
  const auto collect = [&](const std::vector<typename Search::Piece>& pieces) {
    collector.next_rank();
    for (const auto& piece : pieces) {
      const auto tree = piece.content.tree;
      collector.piece(piece.begin, piece.length, search.trees().signature(tree), search.trees().depth(tree));
    }
  };
  collect(first);
  if (contract.all_end_alike()) {
    // If the first image of rank 0 ends like rank 0, then the second like the first, and so on; and so do the images of
    // the other ranks that stand for all, if these end like rank 0.
    bool alike = true;
    for (Rank rank = 1; rank <= program.unrolled() && rank < program.ranks && alike; ++rank) {
      alike = result_of(search, contract, rank) == first;
    }
    if (alike) return collector.order();
    collector.ranks_differ();
  }
  for (Rank rank = 1; rank < program.ranks; ++rank) collect(result_of(search, contract, rank));
  return collector.order();
}

/// check_meaning (meaning.hpp) with a search that has not seen the run yet.
template <typename Search>
std::optional<ReductionOrder> check_contents(Search& search, const TaskProgram& program, const Contract& contract,
                                             const CheckOptions& options, Findings& meaning, Findings& order) {
  TaskRun<Search>(program, search).run();
  check_result(search, program, contract, meaning);
  if (program.collective == Collective::barrier) check_barrier(program, meaning);
  if (!meaning.empty()) return {};
  const ReductionOrder found = order_of(search, program, contract);
  check_order(program, found, options, order);
  return found;
}

}  // namespace hcclsim::hccl
