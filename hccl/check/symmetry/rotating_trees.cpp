#include "hccl/check/symmetry/rotating_trees.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "hccl/check/tree_signature.hpp"

namespace hcclsim::hccl {
namespace {

/// a − b modulo m, of numbers below m.
Rank difference(Rank a, Rank b, Rank m) { return a >= b ? a - b : a + (m - b); }
Rank sum(Rank a, Rank b, Rank m) { return static_cast<Rank>((std::uint64_t{a} + b) % m); }

}  // namespace

std::size_t RotatingTrees::Hash::operator()(const Key& key) const {
  return mix_bits(mix_bits((std::uint64_t{key.first} << 32U) + key.second) + key.by);
}

RotatingTrees::RotatingTrees(const Rotation& rotation) : rotation_(rotation), shapes_(rank_0 + rotation.period()) {
  for (Shape leaf = rank_0; leaf < shapes_.size(); ++leaf) {
    shapes_[leaf].period = rotation.turns();
    shapes_[leaf].size = 1;
  }
}

RotatingTrees::Tree RotatingTrees::turned(Tree tree, Rank by) const {
  return {tree.shape, sum(tree.turn, by, shapes_[tree.shape].period)};
}

RotatingTrees::Shape RotatingTrees::shape_of(const Key& key, Rank period) {
  const auto [found, added] = numbers_.try_emplace(key, static_cast<Shape>(shapes_.size()));
  if (!added) return found->second;
  if (shapes_.size() >= std::numeric_limits<Shape>::max()) internal_error("too many different reductions");
  const Node& first = shapes_[key.first];
  const Node& second = shapes_[key.second];
  const std::uint64_t size = first.size + second.size;
  shapes_.push_back({.first = key.first,
                     .second = key.second,
                     .by = key.by,
                     .period = period,
                     .depth = std::max(first.depth, second.depth) + 1,
                     .size = size < first.size ? std::numeric_limits<std::uint64_t>::max() : size});
  return found->second;
}

RotatingTrees::Tree RotatingTrees::reduce(Tree a, Tree b) {
  if (a.shape < rank_0 || b.shape < rank_0) return mixed;
  if (a.shape == b.shape) return reduce_alike(a, b);
  return a.shape < b.shape ? reduce_different(a, b) : reduce_different(b, a);
}

RotatingTrees::Tree RotatingTrees::reduce_alike(Tree a, Tree b) {
  const Rank period = shapes_[a.shape].period;
  Rank by = difference(b.turn, a.turn, period);
  Rank turn = a.turn;
  if (by > period - by) {
    by = period - by;
    turn = b.turn;
  }
  const Rank own_period = by * 2 == period ? by : period;
  return {shape_of({a.shape, b.shape, by}, own_period), turn % own_period};
}

RotatingTrees::Tree RotatingTrees::reduce_different(Tree a, Tree b) {
  const Rank a_period = shapes_[a.shape].period;
  const Rank b_period = shapes_[b.shape].period;
  const Rank common = std::gcd(a_period, b_period);
  const Rank by = difference(b.turn % common, a.turn % common, common);
  const Rank period = std::lcm(a_period, b_period);
  // The turn t with t = a.turn modulo its period and t + by = b.turn modulo its own.
  const bool a_steps = a_period >= b_period;
  const Rank step = a_steps ? a_period : b_period;
  Rank turn = a_steps ? a.turn : difference(b.turn, by % b_period, b_period);
  while (turn % a_period != a.turn || sum(turn, by, b_period) != b.turn) turn += step;
  return {shape_of({a.shape, b.shape, by}, period), turn};
}

std::vector<RotatingTrees::Step> RotatingTrees::written_out(Shape shape) const {
  struct Visit {
    Tree tree;
    bool sides_done = false;
  };
  std::vector<Step> steps;
  std::vector<Visit> left{{{shape, 0}}};
  while (!left.empty()) {
    const Visit visit = left.back();
    left.pop_back();
    if (is_leaf(visit.tree.shape)) {
      steps.push_back({false, rotation_.image(visit.tree.shape - rank_0, visit.tree.turn)});
      continue;
    }
    if (visit.sides_done) {
      steps.push_back({true, 0});
      continue;
    }
    const Node& node = shapes_[visit.tree.shape];
    left.push_back({visit.tree, true});
    std::array<Tree, 2> sides{turned({node.first, 0}, visit.tree.turn),
                              turned({node.second, node.by % shapes_[node.second].period}, visit.tree.turn)};
    // The deeper one first: the other then has less to keep in the meantime.
    if (depth(sides[0]) > depth(sides[1])) std::swap(sides[0], sides[1]);
    left.push_back({sides[0]});
    left.push_back({sides[1]});
  }
  return steps;
}

std::vector<Rank> RotatingTrees::ranks_in(Tree tree) const {
  std::vector<Rank> ranks;
  if (tree.shape < rank_0) return ranks;
  for (const Step& step : written_out(tree.shape)) {
    if (!step.reduces) ranks.push_back(rotation_.image(step.rank, tree.turn));
  }
  return ranks;
}

bool RotatingTrees::complete(Tree tree) {
  const auto [found, added] = complete_.try_emplace(tree.shape, false);
  if (added && size(tree) == rotation_.ranks()) {
    std::vector<Rank> ranks = ranks_in(tree);
    std::sort(ranks.begin(), ranks.end());
    found->second = std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
  }
  return found->second;
}

std::vector<std::uint64_t> RotatingTrees::signatures_of(Shape shape) const {
  // Many turns at a time, so that the processor has something to do while it waits for a product.
  constexpr Rank lanes = 64;
  using Signatures = std::array<std::uint64_t, lanes>;
  const std::vector<Step> steps = written_out(shape);
  const Rank period = shapes_[shape].period;
  std::vector<std::uint64_t> all;
  std::vector<Signatures> stack;
  for (Rank begin = 0; begin < period; begin += lanes) {
    for (const Step& step : steps) {
      if (!step.reduces) {
        Signatures& top = stack.emplace_back();
        for (Rank lane = 0; lane < lanes; ++lane) {
          top[lane] = signature_of_rank(rotation_.image(step.rank, begin + lane));
        }
        continue;
      }
      const Signatures& second = stack.back();
      Signatures& first = stack[stack.size() - 2];
      for (Rank lane = 0; lane < lanes; ++lane) first[lane] = signature_of_reduction(first[lane], second[lane]);
      stack.pop_back();
    }
    const Rank count = std::min(lanes, period - begin);
    all.insert(all.end(), stack.back().begin(), stack.back().begin() + count);
    stack.clear();
  }
  return all;
}

std::uint64_t RotatingTrees::signature(Tree tree) {
  if (is_leaf(tree.shape)) return signature_of_rank(rotation_.image(tree.shape - rank_0, tree.turn));
  auto found = signatures_.find(tree.shape);
  if (found == signatures_.end()) found = signatures_.emplace(tree.shape, signatures_of(tree.shape)).first;
  return found->second[tree.turn];
}

}  // namespace hcclsim::hccl
