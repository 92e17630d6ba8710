#include "hccl/ps/rounds.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::hccl {

SynchronousRounds::SynchronousRounds(std::size_t pieces, std::uint32_t workers) : pieces_(pieces), workers_(workers) {}

SynchronousRounds::SynchronousRounds(const std::vector<std::uint64_t>& versions,
                                     const std::vector<std::uint32_t>& tokens, std::uint32_t workers)
    : SynchronousRounds(versions.size(), workers) {
  for (std::size_t piece = 0; piece < versions.size(); ++piece) {
    pieces_[piece].version = versions[piece];
    pieces_[piece].tokens = tokens[piece];
  }
}

bool SynchronousRounds::ready_for_push(std::size_t piece, std::uint32_t worker) const {
  const Piece& state = pieces_[piece];
  return state.tokens == 0 && updating_ == 0 &&
         std::ranges::none_of(state.pushed, [&](const PsContribution& one) { return one.worker == worker; });
}

std::uint64_t SynchronousRounds::oldest_version() const {
  return std::ranges::min_element(pieces_, {}, &Piece::version)->version;
}

std::vector<std::size_t> SynchronousRounds::push(std::size_t piece, const PsContribution& contribution) {
  if (!ready_for_push(piece, contribution.worker)) {
    internal_error("piece {} is not ready for the push of worker {}", piece, contribution.worker);
  }
  pieces_[piece].pushed.push_back(contribution);
  const std::uint64_t round = oldest_version();
  std::vector<std::size_t> complete;
  for (std::size_t number = 0; number < pieces_.size(); ++number) {
    if (pieces_[number].version != round) continue;
    if (pieces_[number].pushed.size() < workers_) return {};
    complete.push_back(number);
  }
  updating_ = complete.size();
  return complete;
}

void SynchronousRounds::updated(std::size_t piece) {
  Piece& state = pieces_[piece];
  if (updating_ == 0 || state.pushed.size() < workers_) internal_error("piece {} has no update to end", piece);
  state.pushed.clear();
  state.tokens = workers_;
  ++state.version;
  --updating_;
}

void SynchronousRounds::pull(std::size_t piece) {
  if (!ready_for_pull(piece)) internal_error("piece {} is not ready for a pull", piece);
  --pieces_[piece].tokens;
}

}  // namespace hcclsim::hccl
