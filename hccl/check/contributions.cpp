#include "hccl/check/contributions.hpp"

#include <algorithm>
#include <limits>
#include <queue>

#include "base/error.hpp"
#include "hccl/check/tree_signature.hpp"

namespace hcclsim::hccl {
namespace {

std::uint64_t sum_without_overflow(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

}  // namespace

Contributions::Contributions(Rank ranks) : ranks_(ranks) {
  const std::size_t count = std::size_t{first_rank} + ranks;
  nodes_.resize(count);
  depths_.resize(count, 0);
  signatures_.resize(first_rank);
  for (Rank rank = 0; rank < ranks; ++rank) signatures_.push_back(signature_of_rank(rank));
}

Contributions::Tree Contributions::reduce(Tree a, Tree b) {
  if (a < first_rank || b < first_rank) return mixed;
  const auto [smaller, larger] = std::minmax(a, b);
  const auto [found, added] =
      numbers_.try_emplace((std::uint64_t{smaller} << 32U) + larger, static_cast<Tree>(nodes_.size()));
  if (!added) return found->second;
  if (nodes_.size() >= std::numeric_limits<Tree>::max()) internal_error("too many different reductions");
  nodes_.push_back({smaller, larger});
  depths_.push_back(std::max(depths_[a], depths_[b]) + 1);
  signatures_.push_back(signature_of_reduction(signatures_[a], signatures_[b]));
  return found->second;
}

std::vector<std::uint64_t> Contributions::multiplicities(Tree tree) const {
  std::vector<std::uint64_t> of_ranks(ranks_, 0);
  if (tree < first_rank) return of_ranks;
  // From the root down: a tree has a larger number than its sides, so its count is final when it is the largest tree
  // left.
  std::unordered_map<Tree, std::uint64_t> times{{tree, 1}};
  std::priority_queue<Tree> left;
  left.push(tree);
  while (!left.empty()) {
    const Tree top = left.top();
    left.pop();
    const std::uint64_t count = times[top];
    if (top < first_rank + ranks_) {
      of_ranks[top - first_rank] = count;
      continue;
    }
    for (const Tree side : {nodes_[top].smaller, nodes_[top].larger}) {
      const auto [found, added] = times.try_emplace(side, 0);
      found->second = sum_without_overflow(found->second, count);
      if (added) left.push(side);
    }
  }
  return of_ranks;
}

bool Contributions::complete(Tree tree) {
  const auto [found, added] = complete_.try_emplace(tree, false);
  if (added) {
    const std::vector<std::uint64_t> counts = multiplicities(tree);
    found->second = std::all_of(counts.begin(), counts.end(), [](std::uint64_t count) { return count == 1; });
  }
  return found->second;
}

}  // namespace hcclsim::hccl
