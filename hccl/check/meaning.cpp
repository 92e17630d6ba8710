#include "hccl/check/meaning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "hccl/check/contract.hpp"
#include "hccl/check/contributions.hpp"
#include "hccl/check/program/barrier.hpp"
#include "hccl/check/program/contents.hpp"
#include "hccl/check/program/task_run.hpp"
#include "hccl/check/reduction_order.hpp"

namespace hcclsim::hccl {
namespace {

using Tree = Contributions::Tree;
using Content = hccl::Content<Tree>;
using Piece = hccl::Piece<Tree>;

/// Observes a run and tracks the contents of memory.
class MeaningSearch {
 public:
  MeaningSearch(const TaskProgram& program, const Contract& contract, Findings& findings)
      : program_(program), findings_(findings), contributions_(program.ranks) {
    const std::vector<std::vector<Bytes>> borders = access_borders(program);
    memories_.reserve(borders.size());
    for (const std::vector<Bytes>& of_memory : borders) memories_.emplace_back(of_memory, Content{});
    for (Rank rank = 0; rank < program.ranks; ++rank) {
      for (const Holding& held : contract.initial(rank)) {
        const Content content{contributions_.of(rank), held.shift()};
        put(memories_[memory_of(rank, held.buffer)], {held.offset, held.length, content});
      }
    }
  }

  void enter(Rank /*rank*/, const ProgramPart* /*begin*/, const ProgramPart* /*end*/) {}
  void leave(Rank /*rank*/) {}

  void perform(std::uint32_t chain, std::uint32_t number, const ProgramTask& task) {
    if (task.kind == TaskKind::post || task.kind == TaskKind::wait) return;
    for (const Movement& movement : program_.movements_of(task)) perform(chain, number, task, movement);
  }

  void perform(std::uint32_t chain, std::uint32_t number, const ProgramTask& task, const Movement& movement) {
    const Rank rank = program_.rank_of(chain);
    take(source_rank(task, rank), movement.source);
    const TaskId id{rank, program_.task_id(chain, number).queue, number};
    const Rank to = destination_rank(task, rank);
    IntervalMap<Content>& destination = memories_[memory_of(to, movement.destination.buffer)];
    const auto moved = static_cast<std::int64_t>(movement.source.offset - movement.destination.offset);
    borders_.clear();
    for (const Piece& piece : taken_) {
      borders_.push_back(piece.begin - movement.source.offset + movement.destination.offset);
    }
    if (borders_.size() > 1) destination.cut_at(borders_);
    for (Piece piece : taken_) {
      if (piece.content.tree == Contributions::undefined) {
        find_undefined(id, {source_rank(task, rank), {movement.source.buffer, piece.begin, piece.length}});
        piece.content.tree = Contributions::mixed;
      }
      piece.begin = piece.begin - movement.source.offset + movement.destination.offset;
      piece.content.shift += moved;
      if (reduces(task.kind)) {
        reduce(destination, piece, id, {to, {movement.destination.buffer, piece.begin, piece.length}});
      } else {
        put(destination, piece);
      }
    }
  }

  /// Contents of a range of `output`, equal neighbours in one piece.
  std::vector<Piece> output(Rank rank, Bytes offset, Bytes length) {
    take(rank, {Buffer::output, offset, length});
    return taken_;
  }

  Contributions& contributions() { return contributions_; }

 private:
  /// Puts the pieces of a range into taken_, equal neighbours in one.
  void take(Rank rank, const ByteRange& range) {
    taken_.clear();
    IntervalMap<Content>& memory = memories_[memory_of(rank, range.buffer)];
    const Bytes end = range.offset + range.length;
    memory.cut(end);
    for (std::size_t i = memory.cut(range.offset); i < memory.count() && memory.begin(i) < end; ++i) {
      append_joined(taken_, {memory.begin(i), memory.end(i) - memory.begin(i), memory.state(i)});
    }
  }

  void reduce(IntervalMap<Content>& memory, const Piece& piece, const TaskId& id, const RankBytes& bytes) {
    change_under(memory, piece, [&](Content& content) {
      if (content.tree == Contributions::undefined) {
        find_undefined(id, bytes);
        content = {Contributions::mixed, 0};
      } else if (content.shift != piece.content.shift && content.tree != Contributions::mixed &&
                 piece.content.tree != Contributions::mixed) {
        find_offset(id, bytes, content.shift, piece.content.shift);
        content = {Contributions::mixed, 0};
      } else {
        content.tree = contributions_.reduce(content.tree, piece.content.tree);
      }
    });
  }

  void find_undefined(const TaskId& id, const RankBytes& bytes) {
    if (!findings_.wanted()) return;
    findings_.keep({"undefined",
                    fmt::format("{} reads {} {}+{} of rank {}, which were never written", program_.describe(id),
                                name_of(bytes.range.buffer), bytes.range.offset, bytes.range.length, bytes.rank),
                    {bytes.rank},
                    {id},
                    {bytes}});
  }

  void find_offset(const TaskId& id, const RankBytes& bytes, std::int64_t held, std::int64_t came) {
    if (!findings_.wanted()) return;
    const auto begin = static_cast<std::int64_t>(bytes.range.offset);
    findings_.keep({"offset",
                    fmt::format("{} reduces byte {} of the payload into byte {}", program_.describe(id), begin + came,
                                begin + held),
                    {bytes.rank},
                    {id},
                    {bytes}});
  }

  const TaskProgram& program_;
  Findings& findings_;
  Contributions contributions_;
  std::vector<IntervalMap<Content>> memories_;
  std::vector<Piece> taken_;
  std::vector<Bytes> borders_;  // of the pieces where they go
};

bool of_right_ranks(Tree tree, const Holding& holding, Contributions& contributions) {
  return holding.only ? tree == contributions.of(*holding.only) : contributions.complete(tree);
}

bool is_right(const Piece& piece, const Holding& holding, Contributions& contributions) {
  const Content& content = piece.content;
  return content.tree != Contributions::undefined && content.tree != Contributions::mixed &&
         of_right_ranks(content.tree, holding, contributions) && content.shift == holding.shift();
}

/// What is wrong with a wrong piece of the result. This is slow: it counts the contributions of every rank.
std::string problem_of(const Piece& piece, const Holding& holding, Contributions& contributions) {
  const Content& content = piece.content;
  if (content.tree == Contributions::undefined) return "hold nothing";
  if (content.tree == Contributions::mixed) return "hold what was reduced from wrong bytes";
  if (!of_right_ranks(content.tree, holding, contributions)) {
    return wrong_multiplicities(contributions.multiplicities(content.tree), holding);
  }
  return wrong_place(piece.begin, piece.length, content.shift, holding);
}

void check_result(MeaningSearch& search, const TaskProgram& program, const Contract& contract, Findings& findings) {
  for (Rank rank = 0; rank < program.ranks; ++rank) {
    for (const Holding& holding : contract.required(rank)) {
      for (const Piece& piece : search.output(rank, holding.offset, holding.length)) {
        if (is_right(piece, holding, search.contributions()) || !findings.wanted()) continue;
        findings.keep({"contribution",
                       fmt::format("output {}+{} of rank {} {}", piece.begin, piece.length, rank,
                                   problem_of(piece, holding, search.contributions())),
                       {rank},
                       {},
                       {{rank, {Buffer::output, piece.begin, piece.length}}}});
      }
    }
  }
}

/// The order in which the results of all ranks were reduced.
ReductionOrder order_of(MeaningSearch& search, const TaskProgram& program, const Contract& contract) {
  OrderCollector collector(program, contract.all_end_alike());
  std::vector<Piece> reference;
  for (Rank rank = 0; rank < program.ranks; ++rank) {
    std::vector<Piece> pieces;
    for (const Holding& holding : contract.required(rank)) {
      for (const Piece& piece : search.output(rank, holding.offset, holding.length)) pieces.push_back(piece);
    }
    collector.next_rank();
    for (const Piece& piece : pieces) {
      const Tree tree = piece.content.tree;
      collector.piece(piece.begin, piece.length, search.contributions().signature(tree),
                      search.contributions().depth(tree));
    }
    if (rank == 0) reference = pieces;
    if (contract.all_end_alike() && !std::equal(pieces.begin(), pieces.end(), reference.begin(), reference.end())) {
      collector.ranks_differ();
    }
  }
  return collector.order();
}

}  // namespace

std::string wrong_multiplicities(const std::vector<std::uint64_t>& counts, const Holding& holding) {
  std::string problem;
  std::size_t wrong = 0;
  for (Rank rank = 0; rank < counts.size(); ++rank) {
    const std::uint64_t wanted = !holding.only || *holding.only == rank ? 1 : 0;
    if (counts[rank] == wanted || ++wrong > 4) continue;
    problem += fmt::format("{}the contribution of rank {} {}", problem.empty() ? "" : ", ", rank,
                           counts[rank] == 0 ? "not at all" : fmt::format("{} times", counts[rank]));
  }
  if (wrong > 4) problem += fmt::format(" and {} more", wrong - 4);
  return "hold " + problem;
}

std::string wrong_place(Bytes begin, Bytes length, std::int64_t shift, const Holding& holding) {
  const auto at = static_cast<std::int64_t>(begin);
  return fmt::format("hold bytes {}+{} of {}, not {}+{}", at + shift, length,
                     holding.only ? fmt::format("the contribution of rank {}", *holding.only) : "the reduction",
                     at + holding.shift(), length);
}

std::optional<ReductionOrder> check_meaning(const TaskProgram& program, const CheckOptions& options, Findings& meaning,
                                            Findings& order) {
  const Contract contract(program);
  MeaningSearch search(program, contract, meaning);
  TaskRun<MeaningSearch>(program, search).run();
  check_result(search, program, contract, meaning);
  if (program.collective == Collective::barrier) check_barrier(program, meaning);
  if (!meaning.empty()) return {};
  const ReductionOrder found = order_of(search, program, contract);
  check_order(program, found, options, order);
  return found;
}

}  // namespace hcclsim::hccl
