#include "hccl/strategies/exact.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

struct Amount {
  double cost = 0;
  double memory = 0;
};

Amount operator+(const Amount& a, const Amount& b) { return {a.cost + b.cost, a.memory + b.memory}; }

/// Choices for the operators up to a border, as far as what is behind can see them.
struct Partial {
  Amount amount;
  std::vector<std::uint32_t> border;  ///< candidates of the operators at the border
  std::uint32_t before = 0;           ///< the choice that it goes on from, among those of the border before
  std::uint32_t candidate = 0;
};

class Border {
 public:
  Border(const CostGraph& graph, const ScalarCost& count, const ExactOptions& options)
      : graph_(graph), count_(count), options_(options), last_use_(graph.nodes.size()) {
    for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) last_use_[node] = node;
    for (std::uint32_t edge = 0; edge < graph.edges.size(); ++edge) {
      const auto [low, high] = std::minmax(graph.edges[edge].from, graph.edges[edge].to);
      last_use_[low] = std::max(last_use_[low], high);
      closing_[high].push_back(edge);
    }
    least_behind_.resize(graph.nodes.size() + 1);
    for (std::size_t node = graph.nodes.size(); node-- > 0;) {
      least_behind_[node] = least_behind_[node + 1] + least_of(static_cast<std::uint32_t>(node));
    }
  }

  [[nodiscard]] ExactResult run() && {
    steps_.push_back({Partial{}});
    for (std::uint32_t node = 0; node < graph_.nodes.size(); ++node) step(node);
    return finish();
  }

 private:
  [[nodiscard]] Amount amount(const SearchCost& cost) const { return {count_(cost), cost.memory}; }

  /// The least that an operator and the edges to those before it can cost.
  [[nodiscard]] Amount least_of(std::uint32_t node) const {
    Amount least = least_of(graph_.nodes[node].costs, [](const SearchCost& cost) { return std::optional(cost); });
    const auto edges = closing_.find(node);
    if (edges == closing_.end()) return least;
    for (const std::uint32_t edge : edges->second) {
      least = least + least_of(graph_.edges[edge].costs, [](const std::optional<SearchCost>& cost) { return cost; });
    }
    return least;
  }
  template <typename Costs, typename Get>
  [[nodiscard]] Amount least_of(const Costs& costs, Get get) const {
    Amount least{never, never};
    for (const auto& entry : costs) {
      const std::optional<SearchCost> cost = get(entry);
      if (!cost.has_value()) continue;
      least.cost = std::min(least.cost, count_(*cost));
      least.memory = std::min(least.memory, cost->memory);
    }
    return least;
  }

  void step(std::uint32_t node) {
    std::vector<std::uint32_t> kept;  // places in the border, and then the operator itself
    std::vector<std::uint32_t> border;
    for (std::uint32_t place = 0; place < border_.size(); ++place) {
      if (last_use_[border_[place]] <= node) continue;
      kept.push_back(place);
      border.push_back(border_[place]);
    }
    const bool stays = last_use_[node] > node;
    std::map<std::vector<std::uint32_t>, std::vector<Partial>> best;
    const std::vector<Partial>& before = steps_.back();
    for (std::uint32_t number = 0; number < before.size(); ++number) {
      for (std::uint32_t candidate = 0; candidate < graph_.nodes[node].candidates.size(); ++candidate) {
        const std::optional<Amount> added = added_by(node, candidate, before[number]);
        if (!added.has_value()) continue;
        Partial next{before[number].amount + *added, {}, number, candidate};
        if (next.amount.memory + least_behind_[node + 1].memory > options_.memory) continue;
        for (const std::uint32_t place : kept) next.border.push_back(before[number].border[place]);
        if (stays) next.border.push_back(candidate);
        std::vector<Partial>& alike = best[next.border];
        keep(alike, std::move(next));
      }
    }
    if (stays) border.push_back(node);
    border_ = std::move(border);
    std::vector<Partial> all;
    for (auto& [key, partials] : best) std::ranges::move(partials, std::back_inserter(all));
    drop_hopeless(all, least_behind_[node + 1].cost);
    steps_.push_back(std::move(all));
  }

  /// What a candidate and the edges to operators before it cost; nothing: it must not meet one of them.
  [[nodiscard]] std::optional<Amount> added_by(std::uint32_t node, std::uint32_t candidate, const Partial& before) {
    ++examined_;
    Amount sum = amount(graph_.nodes[node].costs[candidate]);
    const auto edges = closing_.find(node);
    if (edges == closing_.end()) return sum;
    for (const std::uint32_t number : edges->second) {
      const CostEdge& edge = graph_.edges[number];
      const bool forwards = edge.to == node;
      const std::uint32_t other = forwards ? edge.from : edge.to;
      const auto place = static_cast<std::size_t>(std::ranges::find(border_, other) - border_.begin());
      const std::uint32_t met = before.border[place];
      const std::optional<SearchCost>& cost =
          forwards ? graph_.cost(edge, met, candidate) : graph_.cost(edge, candidate, met);
      if (!cost.has_value()) return std::nullopt;
      sum = sum + amount(*cost);
    }
    return sum;
  }

  /// Adds a choice to those with the same border unless one of them is as good; without a limit memory does not count.
  void keep(std::vector<Partial>& partials, Partial next) const {
    const bool limited = options_.memory < never;
    const auto beats = [&](const Partial& a, const Partial& b) {
      return a.amount.cost <= b.amount.cost && (!limited || a.amount.memory <= b.amount.memory);
    };
    if (std::ranges::any_of(partials, [&](const Partial& known) { return beats(known, next); })) return;
    std::erase_if(partials, [&](const Partial& known) { return beats(next, known); });
    partials.push_back(std::move(next));
  }

  void drop_hopeless(std::vector<Partial>& partials, double least_behind) {
    if (partials.size() <= options_.width) return;
    std::ranges::stable_sort(partials, {}, [](const Partial& partial) { return partial.amount.cost; });
    dropped_ = std::min(dropped_, partials[options_.width].amount.cost + least_behind);
    partials.resize(options_.width);
  }

  [[nodiscard]] ExactResult finish() {
    const std::vector<Partial>& whole = steps_.back();
    if (whole.empty()) {
      bad_input("search", "no strategy fits into a memory of {:.0f} bytes{}, {}", options_.memory,
                dropped_ < never ? ", of those that were kept" : "", memory_advice);
    }
    const auto best = std::ranges::min_element(whole, {}, [](const Partial& partial) { return partial.amount.cost; });
    ExactResult result{Choice(graph_.nodes.size()), best->amount.cost, best->amount.memory,
                       std::min(best->amount.cost, dropped_), examined_};
    const Partial* at = &*best;
    for (std::size_t node = graph_.nodes.size(); node-- > 0;) {
      result.choice[node] = at->candidate;
      at = &steps_[node][at->before];
    }
    return result;
  }

  const CostGraph& graph_;
  const ScalarCost& count_;
  const ExactOptions& options_;
  std::vector<std::uint32_t> last_use_;                          ///< of each operator: the last one with an edge to it
  std::map<std::uint32_t, std::vector<std::uint32_t>> closing_;  ///< edges of an operator to those before it
  std::vector<Amount> least_behind_;                             ///< of each operator: of it and all behind it
  std::vector<std::uint32_t> border_;                            ///< operators before with edges to those behind
  std::vector<std::vector<Partial>> steps_;
  double dropped_ = never;
  std::uint64_t examined_ = 0;
};

}  // namespace

ExactResult exact_search(const CostGraph& graph, const ScalarCost& count, const ExactOptions& options) {
  if (options.width == 0) bad_input("search", "the exact search keeps at least 1 choice at a border, got 0");
  return Border(graph, count, options).run();
}

}  // namespace hcclsim::hccl
