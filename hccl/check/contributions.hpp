#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace hcclsim::hccl {

/// What a byte holds, as a tree: the contribution of a rank, or the reduction of two trees. Equal trees have the same
/// number. The two sides of a reduction may be exchanged, because sum, prod, max and min are commutative bit for bit
/// (but not associative).
class Contributions {
 public:
  using Tree = std::uint32_t;
  static constexpr Tree undefined = 0;  ///< never written
  static constexpr Tree mixed = 1;      ///< reduced from bytes that do not belong together

  explicit Contributions(Rank ranks);

  [[nodiscard]] Tree of(Rank rank) const { return first_rank + rank; }
  [[nodiscard]] Tree reduce(Tree a, Tree b);

  /// The largest number of reductions that a contribution passes.
  [[nodiscard]] std::uint32_t depth(Tree tree) const { return depths_[tree]; }
  /// Depends on the shape of the tree alone.
  [[nodiscard]] std::uint64_t signature(Tree tree) const { return signatures_[tree]; }

  /// How often the tree contains the contribution of each rank.
  [[nodiscard]] std::vector<std::uint64_t> multiplicities(Tree tree) const;
  /// Every rank exactly once.
  [[nodiscard]] bool complete(Tree tree);

 private:
  static constexpr Tree first_rank = 2;

  struct Node {
    Tree smaller = undefined;
    Tree larger = undefined;
  };

  Rank ranks_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> depths_;
  std::vector<std::uint64_t> signatures_;
  std::unordered_map<std::uint64_t, Tree> numbers_;  // of the reductions of two trees
  std::unordered_map<Tree, bool> complete_;          // of those that were asked for
};

}  // namespace hcclsim::hccl
