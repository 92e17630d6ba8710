#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hccl/check/meaning.hpp"
#include "hccl/check/program/task_run.hpp"

namespace hcclsim::hccl {
namespace {

/// Some of the ranks.
class RankSet {
 public:
  void add(Rank rank, Rank ranks) {
    if (words_.empty()) words_.resize((ranks + 63) / 64, 0);
    words_[rank / 64] |= std::uint64_t{1} << (rank % 64);
  }
  void add(const RankSet& other) {
    if (words_.empty()) words_.resize(other.words_.size(), 0);
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  [[nodiscard]] bool has(Rank rank) const { return !words_.empty() && (words_[rank / 64] >> (rank % 64) & 1U) != 0; }
  [[nodiscard]] Rank count() const {
    Rank all = 0;
    for (const std::uint64_t word : words_) all += static_cast<Rank>(std::popcount(word));
    return all;
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// Observes a run and tracks which chain knows of which ranks that they have begun.
class BeginSearch {
 public:
  BeginSearch(const TaskProgram& program, Findings& findings)
      : program_(program),
        findings_(findings),
        known_(program.chains()),
        posted_(std::size_t{program.ranks} * program.notifies) {
    for (Rank rank = 0; rank < program.ranks; ++rank) known_[program.chain(rank, 0)].add(rank, program.ranks);
  }

  void enter(Rank rank, const ProgramPart* begin, const ProgramPart* end) {
    const RankSet known = known_to(rank);
    for (; begin != end; ++begin) known_[program_.chain(rank, begin->queue)] = known;
  }

  void leave(Rank rank) {
    const RankSet known = known_to(rank);
    if (known.count() == program_.ranks || !findings_.wanted()) return;
    std::vector<Rank> early{rank};
    for (Rank other = 0; other < program_.ranks; ++other) {
      if (!known.has(other)) early.push_back(other);
    }
    const std::string more = early.size() > 2 ? fmt::format(" and {} others have", early.size() - 2) : " has";
    std::string message = fmt::format("rank {} may end before rank {}{} begun", rank, early[1], more);
    findings_.keep({"barrier", std::move(message), std::move(early)});
  }

  void perform(std::uint32_t chain, std::uint32_t /*number*/, const ProgramTask& task) {
    if (is_post(task.kind)) {
      posted_[std::size_t{task.peer} * program_.notifies + task.value] = known_[chain];
    } else if (is_wait(task.kind)) {
      // Taken once: the slot needs no memory until its next post.
      RankSet& posted = posted_[std::size_t{program_.rank_of(chain)} * program_.notifies + task.value];
      known_[chain].add(std::exchange(posted, {}));
    }
  }

 private:
  [[nodiscard]] RankSet known_to(Rank rank) const {
    RankSet known;
    for (std::uint32_t queue = 0; queue < program_.queues; ++queue) known.add(known_[program_.chain(rank, queue)]);
    return known;
  }

  const TaskProgram& program_;
  Findings& findings_;
  std::vector<RankSet> known_;   // by chain
  std::vector<RankSet> posted_;  // by notify slot
};

}  // namespace

void check_barrier(const TaskProgram& program, Findings& findings) {
  BeginSearch search(program, findings);
  TaskRun<BeginSearch>(program, search).run();
}

}  // namespace hcclsim::hccl
