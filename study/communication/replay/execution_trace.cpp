#include "study/communication/replay/execution_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// Of each node, those that wait for it: begin of its part of `nodes`.
struct Successors {
  std::vector<std::uint32_t> begins;
  std::vector<std::uint32_t> nodes;

  explicit Successors(const RankTrace& trace) : begins(trace.nodes.size() + 1, 0), nodes(trace.dependencies.size()) {
    for (const std::uint32_t before : trace.dependencies) ++begins[before + 1];
    for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
    for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
      const TraceNode& node = trace.nodes[i];
      for (std::uint32_t k = 0; k < node.dependencies + node.start_dependencies; ++k) {
        nodes[next[trace.dependencies[node.first_dependency + k]]++] = i;
      }
    }
  }

  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t node) const {
    return {nodes.data() + begins[node], begins[node + 1] - begins[node]};
  }
};

/// A circle of nodes that wait for each other, of those that are not in the order: "3 → 5 → 3".
std::string circle_of(const RankTrace& trace, const std::vector<std::uint32_t>& order) {
  constexpr std::size_t most_shown = 12;
  std::vector<bool> done(trace.nodes.size(), false);
  for (const std::uint32_t node : order) done[node] = true;
  const auto blocker = [&](std::uint32_t place) {
    const TraceNode& node = trace.nodes[place];
    const auto* const first = trace.dependencies.data() + node.first_dependency;
    const auto* const last = first + node.dependencies + node.start_dependencies;
    return *std::find_if(first, last, [&](std::uint32_t before) { return !done[before]; });
  };
  auto at = static_cast<std::uint32_t>(std::find(done.begin(), done.end(), false) - done.begin());
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) at = blocker(at);  // into the circle
  const std::uint32_t begin = at;
  std::string text = fmt::format("{}", trace.nodes[at].id);
  std::size_t shown = 0;
  do {
    at = blocker(at);
    if (++shown <= most_shown || at == begin) text += fmt::format(" waits for {}", trace.nodes[at].id);
    if (shown == most_shown + 1 && at != begin) text += " …";
  } while (at != begin);
  return text;
}

/// Kahn's algorithm, with the lowest id first.
std::vector<std::uint32_t> ordered(const RankTrace& trace) {
  const Successors successors(trace);
  std::vector<std::uint32_t> open(trace.nodes.size());
  using Ready = std::pair<std::uint64_t, std::uint32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
    open[i] = trace.nodes[i].dependencies + trace.nodes[i].start_dependencies;
    if (open[i] == 0) ready.emplace(trace.nodes[i].id, i);
  }
  std::vector<std::uint32_t> order;
  order.reserve(trace.nodes.size());
  while (!ready.empty()) {
    const std::uint32_t node = ready.top().second;
    ready.pop();
    order.push_back(node);
    for (const std::uint32_t next : successors.of(node)) {
      if (--open[next] == 0) ready.emplace(trace.nodes[next].id, next);
    }
  }
  return order;
}

}  // namespace

std::string_view name_of(NodeKind kind) {
  constexpr std::array<std::string_view, 6> names{"compute", "memory", "send", "receive", "collective", "metadata"};
  return names.at(static_cast<std::size_t>(kind));
}

std::uint64_t ExecutionTrace::nodes() const {
  std::uint64_t nodes = 0;
  for (const std::uint32_t trace : trace_of) nodes += traces[trace].nodes.size();
  return nodes;
}

std::uint32_t ExecutionTrace::intern(const std::string& name) {
  const auto [place, is_new] = numbers.try_emplace(name, static_cast<std::uint32_t>(names.size()));
  if (is_new) names.push_back(name);
  return place->second;
}

std::string ExecutionTrace::place(const RankTrace& trace, const TraceNode& node) const {
  const std::string& name = names[node.name];
  return fmt::format("{}: node {}{}", trace.source, node.id, name.empty() ? "" : fmt::format(" ({})", name));
}

std::string ExecutionTrace::place(Rank rank, const TraceNode& node) const {
  const std::string& name = names[node.name];
  return fmt::format("rank {}, node {}{}", rank, node.id, name.empty() ? "" : fmt::format(" ({})", name));
}

void DependencyList::add(std::vector<std::uint64_t> ends, const std::vector<std::uint64_t>& begins) {
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  ids_.insert(ids_.end(), ends.begin(), ends.end());
  ids_.insert(ids_.end(), begins.begin(), begins.end());
  ends_.push_back(static_cast<std::uint32_t>(ends.size()));
  begins_.push_back(static_cast<std::uint32_t>(begins.size()));
}

void DependencyList::resolve(const ExecutionTrace& whole, RankTrace& trace, std::string_view advice) const {
  std::unordered_map<std::uint64_t, std::uint32_t> places;
  places.reserve(trace.nodes.size());
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
    const auto [other, is_new] = places.try_emplace(trace.nodes[i].id, i);
    if (is_new) continue;
    bad_input("trace", "{} has the id of an earlier node ({}); ids are unique in a file",
              whole.place(trace, trace.nodes[i]), whole.names[trace.nodes[other->second].name]);
  }
  trace.dependencies.reserve(ids_.size());
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
    TraceNode& node = trace.nodes[i];
    node.first_dependency = static_cast<std::uint32_t>(trace.dependencies.size());
    node.dependencies = ends_[i];
    node.start_dependencies = begins_[i];
    for (const std::size_t end = next + ends_[i] + begins_[i]; next < end; ++next) {
      const auto found = places.find(ids_[next]);
      if (found == places.end()) {
        bad_input("trace", "{} waits for node {}, which is not in the file{}", whole.place(trace, node), ids_[next],
                  advice);
      }
      trace.dependencies.push_back(found->second);
    }
  }
  const std::vector<std::uint32_t> order = ordered(trace);
  if (order.size() == trace.nodes.size()) return;
  bad_input("trace", "{}: nodes wait for each other in a circle: {}", trace.source, circle_of(trace, order));
}

std::vector<std::uint32_t> program_order(const RankTrace& trace) { return ordered(trace); }

}  // namespace hcclsim::study
