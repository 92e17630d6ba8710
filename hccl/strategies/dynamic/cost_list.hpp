#pragma once

#include <cstdint>
#include <vector>

#include "hccl/strategies/costs/search_cost.hpp"

/// Lists of costs that partial choices of candidates can have, where a network is folded step by step: of each list
/// only those are kept that may become part of the best whole.
namespace hcclsim::hccl {

/// Choices of candidates as a tree: a leaf is the candidate of one node, an inner one joins two choices.
class ChoiceTree {
 public:
  static constexpr std::uint32_t nothing = ~0U;

  [[nodiscard]] std::uint32_t leaf(std::uint32_t node, std::uint32_t candidate);
  /// One of them may be `nothing`.
  [[nodiscard]] std::uint32_t join(std::uint32_t a, std::uint32_t b);
  /// Writes the candidate of every node in the tree below `root`.
  void unfold(std::uint32_t root, std::vector<std::uint32_t>& candidates) const;

 private:
  struct Item {
    std::uint32_t first;   ///< left, or node
    std::uint32_t second;  ///< right, or candidate
    bool leaf;
  };
  std::vector<Item> items_;
};

struct ListedCost {
  SearchCost cost;
  std::uint32_t choice = ChoiceTree::nothing;
};

using CostList = std::vector<ListedCost>;

/// Sorted by computation; a cost stays if its communication is smaller than that of all before it. Memory does not
/// count: of two costs the one that needs more may stay. With `enable_algo_approxi` one that is smaller by less than a
/// factor of 1 − ε is left out too, but not the last.
void simplify(CostList& list, const SearchOptions& options);

/// All sums of a cost of one list and a cost of the other one, simplified.
[[nodiscard]] CostList sums(const CostList& a, const CostList& b, ChoiceTree& tree, const SearchOptions& options);
/// Puts the costs of `more` behind those of `list`.
void append(CostList& list, const CostList& more);

}  // namespace hcclsim::hccl
