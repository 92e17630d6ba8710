#include "hccl/strategies/dynamic/dynamic_programming.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "hccl/strategies/dynamic/folded_graph.hpp"

namespace hcclsim::hccl {
namespace {

/// Of choices of parts of a graph that do not touch: no other one is better in both what counts and memory.
CostList joined(const CostList& a, const CostList& b, ChoiceTree& tree, const SearchOptions& options) {
  CostList all;
  for (const ListedCost& x : a) {
    for (const ListedCost& y : b) all.push_back({x.cost + y.cost, tree.join(x.choice, y.choice)});
  }
  std::stable_sort(all.begin(), all.end(), [&](const ListedCost& x, const ListedCost& y) {
    return std::pair(objective(x.cost, options), x.cost.memory) < std::pair(objective(y.cost, options), y.cost.memory);
  });
  CostList front;
  for (const ListedCost& entry : all) {
    if (front.empty() || entry.cost.memory < front.back().cost.memory) front.push_back(entry);
  }
  return front;
}

}  // namespace

DynamicProgrammingResult dynamic_programming(const CostGraph& graph, const SearchOptions& options) {
  check(options);
  FoldedGraph folded(graph, options);
  while (folded.fold()) {
  }
  const std::vector<std::vector<std::uint32_t>> components = folded.components();
  if (!options.training && folded.alive().size() > 1) {
    bad_input("search", "dynamic programming has no rule for a network that is only applied and leaves {} operators",
              folded.alive().size());
  }
  CostList all{ListedCost{}};
  for (const std::vector<std::uint32_t>& component : components) {
    all = joined(all, folded.lists_of(component), folded.tree(), options);
  }
  const ListedCost* best = nullptr;
  double least_memory = 0;
  for (const ListedCost& entry : all) {
    if (least_memory == 0 || entry.cost.memory < least_memory) least_memory = entry.cost.memory;
    if (entry.cost.memory > static_cast<double>(options.device_memory)) continue;
    if (best == nullptr || objective(entry.cost, options) < objective(best->cost, options)) best = &entry;
  }
  if (best == nullptr) {
    bad_input("search",
              "no strategy fits into a memory of {} bytes; the least that one of those left needs is {:.0f}, {}",
              options.device_memory, least_memory, memory_advice);
  }
  DynamicProgrammingResult result{Choice(graph.nodes.size(), 0), best->cost, folded.counts()};
  folded.tree().unfold(best->choice, result.choice);
  return result;
}

}  // namespace hcclsim::hccl
