#include "hccl/check/meaning.hpp"

#include <fmt/format.h>

#include <vector>

#include "hccl/check/contents.hpp"
#include "hccl/check/contributions.hpp"

namespace hcclsim::hccl {
namespace {

class MeaningSearch : public ContentsSearch<MeaningSearch, Contributions> {
 public:
  using ContentsSearch::ContentsSearch;
  using ContentsSearch::perform;

  void perform(const TaskId& id, const ProgramTask& task, const Movement& movement) {
    const Rank from = source_rank(task, id.rank);
    const Rank to = destination_rank(task, id.rank);
    const ByteRange& destination = movement.destination;
    take(from, movement.source);
    borders_.clear();
    for (const Piece& piece : taken_) {
      borders_.push_back(piece.begin - movement.source.offset + destination.offset);
    }
    if (borders_.size() > 1) memory(to, destination.buffer).cut_at(borders_);
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      const RankBytes source{from, {movement.source.buffer, taken_[i].begin, taken_[i].length}};
      Piece piece = taken_[i];
      piece.begin = borders_[i];
      piece.content.shift += static_cast<std::int64_t>(movement.source.offset - destination.offset);
      bring(piece, source, to, destination.buffer, id, reduces(task.kind));
    }
  }

  std::vector<Piece> output(Rank rank, Bytes offset, Bytes length) {
    take(rank, {Buffer::output, offset, length});
    return taken_;
  }

  std::string wrong_ranks(Tree tree, const Holding& holding) {
    return wrong_multiplicities(trees().multiplicities(tree), holding);
  }

 private:
  /// Puts the pieces of a range into taken_, equal neighbours in one.
  void take(Rank rank, const ByteRange& range) {
    taken_.clear();
    visit(rank, range, [&](Bytes begin, Bytes length, const Content& content) {
      append_joined(taken_, {begin, length, content});
    });
  }

  std::vector<Piece> taken_;
  std::vector<Bytes> borders_;  // of the pieces where they go
};

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
  MeaningSearch search(program, access_borders(program), contract, Contributions(program.ranks), meaning);
  return check_contents(search, program, contract, options, meaning, order);
}

}  // namespace hcclsim::hccl
