#include "hccl/strategies/dynamic/cost_list.hpp"

#include <algorithm>
#include <utility>

namespace hcclsim::hccl {

std::uint32_t ChoiceTree::leaf(std::uint32_t node, std::uint32_t candidate) {
  items_.push_back({node, candidate, true});
  return static_cast<std::uint32_t>(items_.size() - 1);
}

std::uint32_t ChoiceTree::join(std::uint32_t a, std::uint32_t b) {
  if (a == nothing) return b;
  if (b == nothing) return a;
  items_.push_back({a, b, false});
  return static_cast<std::uint32_t>(items_.size() - 1);
}

void ChoiceTree::unfold(std::uint32_t root, std::vector<std::uint32_t>& candidates) const {
  std::vector<std::uint32_t> open{root};
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    if (at == nothing) continue;
    const Item& item = items_[at];
    if (item.leaf) {
      candidates.at(item.first) = item.second;
    } else {
      open.push_back(item.first);
      open.push_back(item.second);
    }
  }
}

void simplify(CostList& list, const SearchOptions& options) {
  const auto communication = [&](const ListedCost& entry) { return counted_communication(entry.cost, options); };
  std::stable_sort(list.begin(), list.end(), [&](const ListedCost& a, const ListedCost& b) {
    return std::pair(a.cost.computation, communication(a)) < std::pair(b.cost.computation, communication(b));
  });
  const double factor = options.enable_algo_approxi ? 1 - options.algo_approxi_epsilon : 1;
  CostList front;
  double least = 0;  // communication of the last cost of the front
  for (const ListedCost& entry : list) {
    if (!front.empty() && communication(entry) >= least) continue;
    least = communication(entry);
    front.push_back(entry);
  }
  if (factor < 1 && front.size() > 2) {
    CostList thin{front.front()};
    for (std::size_t i = 1; i + 1 < front.size(); ++i) {
      if (communication(front[i]) < factor * communication(thin.back())) thin.push_back(front[i]);
    }
    thin.push_back(front.back());
    front = std::move(thin);
  }
  list = std::move(front);
}

CostList sums(const CostList& a, const CostList& b, ChoiceTree& tree, const SearchOptions& options) {
  // A pair is remembered by one number until it is known whether it stays.
  CostList all;
  all.reserve(a.size() * b.size());
  for (std::uint32_t i = 0; i < a.size(); ++i) {
    for (std::uint32_t j = 0; j < b.size(); ++j) {
      all.push_back({a[i].cost + b[j].cost, static_cast<std::uint32_t>(i * b.size() + j)});
    }
  }
  simplify(all, options);
  for (ListedCost& entry : all) {
    const ListedCost& first = a[entry.choice / b.size()];
    const ListedCost& second = b[entry.choice % b.size()];
    entry.choice = tree.join(first.choice, second.choice);
  }
  return all;
}

void append(CostList& list, const CostList& more) { list.insert(list.end(), more.begin(), more.end()); }

}  // namespace hcclsim::hccl
