#include "hccl/collective/formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace hcclsim::hccl {
namespace {

FormulaTerms operator+(FormulaTerms a, const FormulaTerms& b) { return a += b; }

/// Both phases of an allreduce, or the one that is asked for.
std::optional<FormulaTerms> phases(const FormulaTerms& reduce_scatter, const FormulaTerms& allgather,
                                   Collective collective) {
  switch (collective) {
    case Collective::reduce_scatter:
      return reduce_scatter;
    case Collective::allgather:
      return allgather;
    case Collective::allreduce:
      return reduce_scatter + allgather;
    default:
      return std::nullopt;
  }
}

std::optional<FormulaTerms> halving_doubling_terms(Collective collective, Rank ranks, double payload) {
  const Rank core = std::bit_floor(ranks);
  const double log = std::bit_width(core) - 1;
  const double share = (core - 1.0) / core * payload;
  const FormulaTerms halving{.steps = log, .bytes = share, .reduced = share};
  const FormulaTerms doubling{.steps = log, .bytes = share};
  if (collective == Collective::broadcast) {
    const double rounds = std::bit_width(ranks - 1);
    return FormulaTerms{.steps = rounds, .bytes = rounds * payload};
  }
  // The ranks beyond the power of two give their payload away and, in an allreduce, get the result back.
  const FormulaTerms folding{.steps = 1, .bytes = payload, .reduced = payload};
  const FormulaTerms unfolding{.steps = 1, .bytes = payload};
  if (collective == Collective::reduce) return core == ranks ? halving + doubling : folding + halving + doubling;
  if (core == ranks) return phases(halving, doubling, collective);
  if (collective == Collective::allreduce) return folding + halving + doubling + unfolding;
  // The longest row of blocks in every round, and the block that goes to or from those beyond.
  double row = 0;
  for (Rank length = 1; length < core; length *= 2) row += length + std::min(ranks - core, length);
  const double block = payload / ranks;
  const FormulaTerms rows{.steps = log, .bytes = row * block, .reduced = row * block};
  const FormulaTerms own{.steps = 1, .bytes = block};
  return phases(folding + rows + own, own + FormulaTerms{.steps = log, .bytes = row * block} + unfolding, collective);
}

/// NHR and NB.
std::optional<FormulaTerms> bruck_terms(Collective collective, Rank ranks, double payload) {
  const double rounds = std::bit_width(ranks - 1);
  const double share = (ranks - 1.0) / ranks * payload;
  const FormulaTerms allgather{.steps = rounds, .bytes = share};
  if (collective == Collective::scatter) return allgather;
  if (collective == Collective::broadcast) return allgather + allgather;
  return phases({.steps = rounds, .bytes = share, .reduced = share}, allgather, collective);
}

/// Terms of an allreduce or of one of its phases; for halving-doubling, NHR and NB also of collectives with a root.
std::optional<FormulaTerms> phase_terms(std::string_view algorithm, Collective collective, Rank ranks, double payload,
                                        std::uint32_t rings) {
  const double others = ranks - 1.0;
  if (algorithm == "ring" || algorithm == "multi-ring") {
    const double share = others / ranks * payload / (algorithm == "ring" ? 1 : rings);
    return phases({.steps = others, .bytes = share, .reduced = share}, {.steps = others, .bytes = share}, collective);
  }
  if (algorithm == "mesh" || algorithm == "mesh-two-shot") {
    constexpr auto read = sim::Access::read;
    const double slice = payload / ranks;
    return phases({.steps = 1, .bytes = slice, .reduced = others * slice, .access = read},
                  {.steps = 1, .bytes = slice, .access = read}, collective);
  }
  if (algorithm == "mesh-one-shot" && collective == Collective::allreduce) {
    return FormulaTerms{.steps = 1, .bytes = payload, .reduced = others * payload, .access = sim::Access::read};
  }
  if (algorithm == "nhr" || algorithm == "nb") return bruck_terms(collective, ranks, payload);
  if (algorithm == "halving-doubling") return halving_doubling_terms(collective, ranks, payload);
  return std::nullopt;
}

/// Terms of an alltoall, a send-recv or a collective with a root: HCCL's formulas of ring broadcast, star and pairwise;
/// for the others the sums of their steps, as in the headers of the algorithms.
std::optional<FormulaTerms> other_terms(std::string_view algorithm, Collective collective, Rank ranks, double payload,
                                        std::uint32_t rings) {
  const bool broadcast = collective == Collective::broadcast;
  const bool reduce = collective == Collective::reduce;
  const bool one_way = collective == Collective::scatter || collective == Collective::gather;
  const bool alltoall = collective == Collective::alltoall;
  constexpr auto read = sim::Access::read;
  const double others = ranks - 1.0;
  const double slice = payload / ranks;
  if (algorithm == "ring" || algorithm == "multi-ring") {
    const double share = others * slice / (algorithm == "ring" ? 1 : rings);
    if (one_way) return FormulaTerms{.steps = others, .bytes = share};
    if (!broadcast && !reduce) return std::nullopt;
    if (algorithm == "multi-ring") {
      return FormulaTerms{.steps = 2 * others, .bytes = 2 * share, .reduced = reduce ? share : 0};
    }
    const double whole = others * payload;
    return FormulaTerms{.steps = others, .bytes = whole, .reduced = reduce ? whole : 0, .access = read};
  }
  if (algorithm == "mesh") {
    if (one_way || alltoall) return FormulaTerms{.steps = 1, .bytes = slice, .access = read};
    if (!broadcast && !reduce) return std::nullopt;
    return FormulaTerms{.steps = 2, .bytes = 2 * slice, .reduced = reduce ? others * slice : 0, .access = read};
  }
  if (algorithm == "star") {
    if (one_way) return FormulaTerms{.steps = 1, .bytes = slice, .access = read};
    if (!broadcast && !reduce) return std::nullopt;
    return FormulaTerms{.steps = 1, .bytes = payload, .reduced = reduce ? others * payload : 0, .access = read};
  }
  if (algorithm == "pairwise" && alltoall)
    return FormulaTerms{.steps = others, .bytes = others * slice, .access = read};
  if (algorithm == "direct" && collective == Collective::send_recv) {
    return FormulaTerms{.steps = 1, .bytes = payload, .access = read};
  }
  return std::nullopt;
}

/// "2n", "0.875n", "n".
std::string of_payload(double bytes, Bytes payload) {
  const double factor = payload == 0 ? 0 : bytes / static_cast<double>(payload);
  return factor == 1 ? "n" : fmt::format("{:.4g}n", factor);
}

std::string to_string(const FormulaTerms& terms, Bytes payload) {
  std::string text = terms.steps == 1 ? "α" : fmt::format("{:g}α", terms.steps);
  text += fmt::format(" + {}β", of_payload(terms.bytes, payload));
  if (terms.reduced > 0) text += fmt::format(" + {}γ", of_payload(terms.reduced, payload));
  return text;
}

Seconds terms_time(const FormulaTerms& terms, const LevelCosts& level, const device::TaskCosts& tasks) {
  if (terms.steps == 0) return 0;
  const auto step = static_cast<Bytes>(terms.bytes / std::max(terms.steps, 1.0));
  const BytesPerSecond bandwidth = terms.access == sim::Access::read ? level.read : level.write;
  const Seconds reducing = level.inline_reduce ? 0 : terms.reduced / tasks.reduce_bandwidth;
  return terms.steps * alpha_of(level, tasks, step) + terms.bytes / bandwidth + reducing;
}

/// The parts of a collective over several levels that one level does, in their order; the outermost level does the
/// collective itself.
std::vector<Collective> parts_of(Collective collective, bool outermost) {
  using enum Collective;
  if (outermost) return {collective};
  switch (collective) {
    case allreduce:
      return {reduce_scatter, allgather};
    case broadcast:
      return {scatter, allgather};
    case reduce:
      return {reduce_scatter, gather};
    default:
      return {collective};
  }
}

/// In a collective with a root, only one of several rings works.
std::string_view name_on_level(Algorithm algorithm, Collective collective) {
  return name_of(algorithm == Algorithm::multi_ring && is_rooted(collective) ? Algorithm::ring : algorithm);
}

/// The bytes that a level works on whose groups span `span` ranks and whose members span `inside` ranks.
double bytes_of_level(const Operation& operation, std::uint64_t inside, std::uint64_t span) {
  const auto payload = static_cast<double>(operation.payload());
  if (operation.collective == Collective::alltoall) return payload;
  if (operation.blocks() == 1) return payload / static_cast<double>(inside);
  return payload / operation.ranks * static_cast<double>(span);
}

std::optional<Formula> formula_of_levels(const Operation& operation, const Topology& topology,
                                         const std::vector<HierarchyLevel>& levels, std::uint32_t rings) {
  const auto outermost = std::find_if(levels.rbegin(), levels.rend(), [](const auto& level) { return level.size > 1; });
  Formula formula;
  std::uint64_t inside = 1;
  for (const HierarchyLevel& level : levels) {
    const std::uint64_t span = inside * level.size;
    const double bytes = bytes_of_level(operation, inside, span);
    inside = span;
    if (level.size == 1) continue;
    FormulaTerms terms;
    for (const Collective part : parts_of(operation.collective, &level == &*outermost)) {
      const auto of_part = formula_terms(name_on_level(level.algorithm, part), part, level.size, bytes, rings);
      if (!of_part.has_value()) return std::nullopt;
      terms += *of_part;
    }
    formula.push_back({topology.extent_of(span), terms});
  }
  return formula;
}

FormulaTerms with_reductions(FormulaTerms terms) {
  terms.reduced = terms.bytes;
  return terms;
}

/// HCCL's formula of the allreduce; those of its phases are derived (algorithm/ahc.hpp). Groups are super-pods, or
/// servers.
std::optional<Formula> formula_of_ahc(const Operation& operation, const Topology& topology) {
  const bool pods = !topology.super_pods.empty();
  const std::vector<Rank> groups = pods ? topology.super_pod_sizes() : topology.server_sizes();
  if (groups.empty()) return std::nullopt;
  const Rank smallest = *std::min_element(groups.begin(), groups.end());
  const Rank largest = *std::max_element(groups.begin(), groups.end());
  const auto count = static_cast<double>(groups.size());
  const double ranks = operation.ranks;
  const auto payload = static_cast<double>(operation.payload());
  const auto rounds = [](std::size_t size) { return static_cast<double>(std::bit_width(size - 1)); };
  const FormulaTerms gather{.steps = rounds(largest), .bytes = (largest - 1.0) / largest * payload};
  Rank readers = largest;  // of the smallest group that has slices to read
  for (const Rank size : groups) readers = size > 1 ? std::min(readers, size) : readers;
  const FormulaTerms read{.steps = 1, .bytes = payload / (ranks * readers), .access = sim::Access::read};
  FormulaTerms owners{.steps = rounds(groups.size()), .bytes = (count - 1) / (count * smallest) * payload};
  if (operation.collective != Collective::allreduce && smallest != largest) {
    owners = {.steps = count - 1, .bytes = (ranks - smallest) / (ranks * smallest) * payload};
  }
  Formula formula;
  const auto inside = [&](const FormulaTerms& terms) {
    if (largest > 1) formula.push_back({pods ? Extent::super_pod : Extent::server, terms});
  };
  const auto between = [&](const FormulaTerms& terms) {
    if (groups.size() > 1) formula.push_back({pods ? Extent::cluster : Extent::super_pod, terms});
  };
  switch (operation.collective) {
    case Collective::allreduce:
      inside(with_reductions(gather) + gather);
      between(with_reductions(owners) + owners);
      return formula;
    case Collective::reduce_scatter:
      inside(with_reductions(gather));
      between(with_reductions(owners));
      inside(read);
      return formula;
    case Collective::allgather:
      inside(read);
      between(owners);
      inside(gather);
      return formula;
    default:
      return std::nullopt;
  }
}

/// HCCL's formula (algorithm/pipeline.hpp): S−1 steps between servers beside as many inside, then one more inside. It
/// leaves out reductions.
std::optional<Formula> formula_of_pipeline(const Operation& operation, const Topology& topology,
                                           const std::vector<HierarchyLevel>& levels) {
  const double phases = operation.collective == Collective::allreduce ? 2 : 1;
  const Rank servers = levels.back().size;
  const double part = static_cast<double>(operation.payload()) / operation.ranks;
  const auto inside = [&](double steps) {
    return LevelTerms{topology.extent_of(levels.front().size),
                      {.steps = steps, .bytes = steps * part, .access = sim::Access::read}};
  };
  Formula formula;
  if (servers > 1) {
    const double steps = phases * (servers - 1);
    formula.push_back({topology.extent_of(operation.ranks), {.steps = steps, .bytes = steps * part}});
    if (levels.front().size > 1) {
      formula.back().with_next = true;
      formula.push_back(inside(steps));
    }
  }
  if (levels.front().size > 1) formula.push_back(inside(phases));
  return formula;
}

/// Makes the level as slow as the route.
void slow_down(LevelCosts& level, const sim::Route& route, const sim::Cluster& cluster) {
  const BytesPerSecond capacity = cluster.capacity(route.slowest);
  if (route.transport == sim::Transport::rdma) level.transport = sim::Transport::rdma;
  level.latency = std::max(level.latency, route.latency);
  level.write = std::min(level.write, capacity / route.write_factor);
  level.read = std::min(level.read, capacity / route.read_factor);
}

/// Position of the first rank of the largest group.
Rank first_of_largest(const std::vector<Rank>& sizes) {
  const auto largest = std::max_element(sizes.begin(), sizes.end());
  return std::accumulate(sizes.begin(), largest, Rank{0});
}

/// Number of the group that contains a position.
std::size_t group_of(Rank position, const std::vector<Rank>& sizes) {
  std::size_t group = 0;
  for (Rank end = 0; group < sizes.size() && (end += sizes[group]) <= position;) ++group;
  return group;
}

}  // namespace

FormulaTerms& FormulaTerms::operator+=(const FormulaTerms& other) {
  steps += other.steps;
  bytes += other.bytes;
  reduced += other.reduced;
  if (other.steps > 0) access = other.access;
  return *this;
}

std::optional<FormulaTerms> formula_terms(std::string_view algorithm, Collective collective, Rank ranks, double payload,
                                          std::uint32_t rings) {
  if (ranks == 1) return FormulaTerms{};
  const auto terms = phase_terms(algorithm, collective, ranks, payload, rings);
  return terms.has_value() ? terms : other_terms(algorithm, collective, ranks, payload, rings);
}

std::optional<Formula> formula_of(std::string_view algorithm, const Operation& operation, const Topology& topology,
                                  const device::Soc& soc, const std::vector<HierarchyLevel>& levels) {
  if (!operation.counts.empty()) return std::nullopt;
  const std::uint32_t rings = soc.generation == device::Generation::a1 ? 4 : 2;
  if (algorithm.starts_with("hierarchical(")) return formula_of_levels(operation, topology, levels, rings);
  if (algorithm.starts_with("pipeline(")) return formula_of_pipeline(operation, topology, levels);
  if (algorithm == "ahc") return formula_of_ahc(operation, topology);
  const auto terms =
      formula_terms(algorithm, operation.collective, topology.ranks, static_cast<double>(operation.payload()), rings);
  if (!terms.has_value()) return std::nullopt;
  return Formula{{topology.extent_of(topology.ranks), *terms}};
}

std::optional<FormulaPasses> formula_of_windows(const Schedule& schedule, const Topology& topology,
                                                const device::Soc& soc, const std::vector<HierarchyLevel>& levels) {
  FormulaPasses passes;
  const Operation& operation = schedule;
  const auto add = [&](std::uint64_t elements, std::uint32_t times) {
    Operation part = operation;
    part.elements = elements;
    std::optional<Formula> formula = formula_of(schedule.algorithm, part, topology, soc, levels);
    if (formula.has_value()) passes.push_back({std::move(*formula), times});
  };
  const std::uint64_t window = schedule.window == 0 ? schedule.elements : schedule.window;
  const std::uint32_t full = schedule.window == 0 ? 1 : static_cast<std::uint32_t>(schedule.elements / window);
  if (full > 0) add(window, full);
  if (schedule.elements > full * window) add(schedule.elements - full * window, 1);
  if (passes.empty()) return std::nullopt;
  return passes;
}

std::string to_string(const FormulaPasses& passes, Bytes payload) {
  if (passes.size() == 1 && passes.front().times == 1) return to_string(passes.front().formula, payload);
  std::string text;
  for (const FormulaPass& pass : passes) {
    if (!text.empty()) text += " + ";
    if (pass.times > 1) text += fmt::format("{} × ", pass.times);
    text += fmt::format("({})", to_string(pass.formula, payload));
  }
  return text;
}

std::string to_string(const Formula& formula, Bytes payload) {
  if (formula.size() == 1) return to_string(formula.front().terms, payload);
  std::string text;
  bool beside = false;
  for (const LevelTerms& level : formula) {
    constexpr std::array<std::string_view, 3> places{"inside", "between", "between super-pods"};
    text +=
        fmt::format("{}{}{} {}{}", text.empty() ? "" : "; ", level.with_next ? "max(" : "",
                    places[static_cast<std::size_t>(level.extent)], to_string(level.terms, payload), beside ? ")" : "");
    beside = level.with_next;
  }
  return text;
}

FormulaCosts formula_costs(const Communicator& communicator, sim::Cluster& cluster, const device::Soc& soc,
                           const device::TaskCosts& tasks, DataType type, ReduceOp op) {
  constexpr BytesPerSecond unlimited = std::numeric_limits<BytesPerSecond>::infinity();
  FormulaCosts costs{.levels = {}, .tasks = tasks};
  for (LevelCosts& level : costs.levels) level = {.write = unlimited, .read = unlimited};
  const Topology topology = topology_of(communicator, cluster);
  const std::vector<Rank> pods = topology.super_pod_sizes();
  const Rank center = first_of_largest(topology.uneven_servers);
  const Rank first = communicator.ranks[center];
  std::array<bool, 3> is_known{};
  for (Rank position = 0; position < communicator.ranks.size(); ++position) {
    const Rank rank = communicator.ranks[position];
    if (rank == first) continue;
    const bool same_server = cluster.npu(rank).server == cluster.npu(first).server;
    const Extent extent = same_server                                          ? Extent::server
                          : group_of(position, pods) == group_of(center, pods) ? Extent::super_pod
                                                                               : Extent::cluster;
    // The first of the ranks beyond the server stands for all of them.
    bool& known = is_known[static_cast<std::size_t>(extent)];
    if (known) continue;
    slow_down(costs.levels[static_cast<std::size_t>(extent)], cluster.route(first, rank), cluster);
    known = extent != Extent::server;
  }
  for (LevelCosts& level : costs.levels) {
    level.inline_reduce = device::inline_reduce(soc, type, op, Operation{}.alignment, level.transport);
  }
  return costs;
}

Seconds alpha_of(const LevelCosts& level, const device::TaskCosts& tasks, Bytes step) {
  return 2 * (tasks.notify_record + tasks.notify_wait) + tasks.transfer_setup(level.transport, step) + level.latency;
}

Seconds formula_time(const Formula& formula, const FormulaCosts& costs) {
  Seconds time = 0;
  Seconds beside = 0;
  for (const LevelTerms& level : formula) {
    const Seconds longer = std::max(beside, terms_time(level.terms, costs.over(level.extent), costs.tasks));
    beside = level.with_next ? longer : 0;
    if (!level.with_next) time += longer;
  }
  return time;
}

Seconds formula_time(const FormulaPasses& passes, const FormulaCosts& costs) {
  Seconds time = 0;
  for (const FormulaPass& pass : passes) time += pass.times * formula_time(pass.formula, costs);
  return time;
}

}  // namespace hcclsim::hccl
