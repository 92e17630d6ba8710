#include "study/compare/strategies/least_choice.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

namespace hcclsim::study {
namespace {

using hccl::Choice;

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// A choice for the first nodes of the graph.
struct PartOfChoice {
  Choice choice{};
  Seconds bound = 0;  ///< of all choices that begin so
  double memory = 0;
};

/// What is looked at first comes last: the least bound, of equal ones that of more nodes, then the first choice.
struct Later {
  bool operator()(const PartOfChoice& a, const PartOfChoice& b) const {
    if (a.bound != b.bound) return a.bound > b.bound;
    if (a.choice.size() != b.choice.size()) return a.choice.size() < b.choice.size();
    return a.choice > b.choice;
  }
};

class LeastChoiceSearch {
 public:
  LeastChoiceSearch(const ChoiceSpace& space, Seconds limit, const StepsOfChoices& simulate)
      : space_(space), simulate_(simulate), step_(limit) {
    const std::size_t nodes = space.costs.nodes.size();
    closing_.resize(nodes);
    for (const hccl::CostEdge& edge : space.costs.edges) closing_[std::max(edge.from, edge.to)].push_back(&edge);
    behind_.resize(nodes + 1);
    for (std::size_t node = nodes; node-- > 0;) {
      const Seconds least = node < space.least.size() ? std::ranges::min(space.least[node]) : 0;
      const auto& costs = space.costs.nodes[node].costs;
      const double memory = std::ranges::min(costs, {}, &hccl::SearchCost::memory).memory;
      behind_[node] = {.bound = behind_[node + 1].bound + least, .memory = behind_[node + 1].memory + memory};
    }
  }

  LeastChoice search(const std::vector<KnownChoice>& known) && {
    for (const KnownChoice& one : known) add(one.choice, one.step);
    const auto start = std::ranges::min_element(known, {}, &KnownChoice::step);
    // What a choice needs that is changed is known only where all nodes are decided.
    if (start != known.end() && space_.memory == unlimited) climb(*start);
    look_at_all();
    found_.simulated = steps_.size();
    return std::move(found_);
  }

 private:
  static constexpr std::size_t at_once = 16;
  static constexpr std::size_t most_parts = std::size_t{1} << 20U;  ///< that wait

  void add(const Choice& choice, Seconds step) {
    steps_[choice] = step;
    if (step > step_ || (found_.best.has_value() && step == step_) || step == unlimited) return;
    step_ = step;
    found_.best = {choice, step};
  }

  /// Those choices that were not, as far as they are allowed.
  void simulate(std::vector<Choice> choices) {
    std::erase_if(choices, [&](const Choice& choice) { return steps_.contains(choice); });
    choices.resize(
        std::min<std::size_t>(choices.size(), space_.most - std::min(space_.most, std::uint64_t{steps_.size()})));
    if (choices.empty()) return;
    const std::vector<Seconds> steps = simulate_(choices);
    for (std::size_t i = 0; i < choices.size(); ++i) add(choices[i], steps[i]);
  }

  void climb(KnownChoice from) {
    for (bool shorter = true; shorter && steps_.size() < space_.most;) {
      shorter = false;
      for (std::size_t op = 0; op < space_.least.size(); ++op) shorter = change(op, from) || shorter;
    }
  }

  /// Whether another candidate of an operator is better, which then is chosen.
  bool change(std::size_t op, KnownChoice& from) {
    std::vector<Choice> others;
    for (std::uint32_t candidate = 0; candidate < space_.least[op].size(); ++candidate) {
      if (candidate == from.choice[op]) continue;
      others.push_back(from.choice);
      others.back()[op] = candidate;
    }
    simulate(others);
    const Seconds before = from.step;
    for (const Choice& other : others) {
      const auto found = steps_.find(other);
      if (found != steps_.end() && found->second < from.step) from = {other, found->second};
    }
    return from.step < before;
  }

  /// Until no choice can be better, or enough were looked at.
  void look_at_all() {
    std::priority_queue<PartOfChoice, std::vector<PartOfChoice>, Later> parts;
    parts.push({.bound = behind_[0].bound});
    std::vector<Choice> whole;
    std::optional<Seconds> open;
    while (!parts.empty() && parts.top().bound < step_) {
      if (parts.size() > most_parts || steps_.size() + whole.size() >= space_.most) {
        open = parts.top().bound;
        break;
      }
      const PartOfChoice part = parts.top();
      parts.pop();
      if (part.choice.size() < space_.costs.nodes.size()) {
        for (PartOfChoice& longer : longer_by_one(part)) parts.push(std::move(longer));
        continue;
      }
      whole.emplace_back(part.choice.begin(), part.choice.begin() + static_cast<std::ptrdiff_t>(space_.least.size()));
      if (whole.size() < at_once) continue;
      simulate(std::exchange(whole, {}));
    }
    simulate(std::move(whole));
    found_.bound = std::min(open.value_or(step_), step_);
  }

  [[nodiscard]] std::vector<PartOfChoice> longer_by_one(const PartOfChoice& part) const {
    std::vector<PartOfChoice> all;
    const std::size_t node = part.choice.size();
    const std::vector<hccl::SearchCost>& costs = space_.costs.nodes[node].costs;
    for (std::uint32_t candidate = 0; candidate < costs.size(); ++candidate) {
      PartOfChoice longer = part;
      longer.choice.push_back(candidate);
      const std::optional<double> kept = kept_between(longer.choice);
      if (!kept.has_value()) continue;
      if (node < space_.least.size()) {
        longer.bound += space_.least[node][candidate] - std::ranges::min(space_.least[node]);
      }
      longer.memory += costs[candidate].memory + *kept;
      if (longer.memory + behind_[node + 1].memory <= space_.memory) all.push_back(std::move(longer));
    }
    return all;
  }

  /// What the edges keep that end at the last node of a choice; nothing: candidates must not meet.
  [[nodiscard]] std::optional<double> kept_between(const Choice& choice) const {
    double memory = 0;
    for (const hccl::CostEdge* const edge : closing_[choice.size() - 1]) {
      const std::optional<hccl::SearchCost>& cost = space_.costs.cost(*edge, choice[edge->from], choice[edge->to]);
      if (!cost.has_value()) return std::nullopt;
      memory += cost->memory;
    }
    return memory;
  }

  const ChoiceSpace& space_;
  const StepsOfChoices& simulate_;
  Seconds step_;  ///< the shortest that is known
  LeastChoice found_;
  std::vector<std::vector<const hccl::CostEdge*>> closing_;  ///< of each node: edges to those before it
  std::vector<PartOfChoice> behind_;                         ///< of each node: the least of it and all behind it
  std::map<Choice, Seconds> steps_;                          ///< that are known
};

}  // namespace

LeastChoice least_choice(const ChoiceSpace& space, const std::vector<KnownChoice>& known, Seconds limit,
                         const StepsOfChoices& simulate) {
  return LeastChoiceSearch(space, limit, simulate).search(known);
}

}  // namespace hcclsim::study
