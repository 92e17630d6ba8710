#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/units.hpp"
#include "hccl/check/symmetry/symmetry.hpp"

namespace hcclsim::hccl {

/// Trees of contributions up to rotation of the ranks, with the same members as Contributions: a tree is a *shape* and
/// the number of ranks by which it is turned. A ring on p ranks has p shapes in place of p² trees.
///
/// A shape is the contribution of one of the ranks that stand for all (rank 0; several ranks if the rotation is by more
/// than one rank), or the reduction of two shapes, the second turned by `by` relative to the first. Some shapes are the
/// same when they are turned by less than the number of turns (by their *period*, a divisor of it): with 8 ranks that
/// turn by one, the sum of ranks 0 and 4 has period 4. Turns are kept modulo the period and pairs in one order, so that
/// equal trees are equal objects:
///
///   - two different shapes A, B with periods a, b, turned by s and t: (A, B, (t − s) mod gcd(a, b)), turned by the one
///     number modulo lcm(a, b) that gives s modulo a and t modulo b. Only a turn that leaves both alone leaves the pair
///     alone, since A is no image of B: the period is lcm(a, b).
///   - twice the same shape with period a, turned by s and t: the sides may change places, so of (t − s) and (s − t)
///     modulo a the smaller one is kept. A turn that exchanges the sides is (t − s) as well as (s − t) modulo a, hence
///     a/2: there the period is a/2, else a.
class RotatingTrees {
 public:
  using Shape = std::uint32_t;
  static constexpr Shape rank_0 = 2;  ///< the contribution of rank 0; those of the others that stand for all follow

  struct Tree {
    Shape shape;
    Rank turn;
    friend bool operator==(const Tree&, const Tree&) = default;
  };
  static constexpr Tree undefined{0, 0};
  static constexpr Tree mixed{1, 0};

  explicit RotatingTrees(const Rotation& rotation);

  [[nodiscard]] Tree of(Rank rank) const { return {rank_0 + rotation_.representative(rank), rotation_.turn_of(rank)}; }
  [[nodiscard]] Tree reduce(Tree a, Tree b);
  [[nodiscard]] Tree turned(Tree tree, Rank by) const;

  [[nodiscard]] std::uint32_t depth(Tree tree) const { return shapes_[tree.shape].depth; }
  /// Number of contributions in the tree, with repetitions; at most the largest number of the type.
  [[nodiscard]] std::uint64_t size(Tree tree) const { return shapes_[tree.shape].size; }
  [[nodiscard]] bool complete(Tree tree);
  /// The ranks whose contributions are in the tree, with repetitions: size() of them.
  [[nodiscard]] std::vector<Rank> ranks_in(Tree tree) const;
  /// Depends on the tree alone and equals the signature that Contributions gives. Takes time and memory in proportion
  /// to the tree's size times the number of turns, because all turns are computed at once.
  [[nodiscard]] std::uint64_t signature(Tree tree);

 private:
  struct Node {
    Shape first = 0;
    Shape second = 0;
    Rank by = 0;  // the second side is turned by so much more
    Rank period = 1;
    std::uint32_t depth = 0;
    std::uint64_t size = 0;
  };
  struct Key {
    Shape first = 0;
    Shape second = 0;
    Rank by = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  /// A tree written out: its leaves and reductions, sides before their reduction.
  struct Step {
    bool reduces = false;
    Rank rank = 0;  // leaf
  };

  [[nodiscard]] Shape shape_of(const Key& key, Rank period);
  [[nodiscard]] Tree reduce_alike(Tree a, Tree b);
  [[nodiscard]] Tree reduce_different(Tree a, Tree b);
  [[nodiscard]] std::vector<Step> written_out(Shape shape) const;
  [[nodiscard]] std::vector<std::uint64_t> signatures_of(Shape shape) const;

  [[nodiscard]] bool is_leaf(Shape shape) const { return shape < rank_0 + rotation_.period(); }

  Rotation rotation_;
  std::vector<Node> shapes_;
  std::unordered_map<Key, Shape, Hash> numbers_;
  std::unordered_map<Shape, bool> complete_;
  std::unordered_map<Shape, std::vector<std::uint64_t>> signatures_;  // of all turns
};

}  // namespace hcclsim::hccl
