#include "hccl/collective/formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

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
  if (collective != Collective::allreduce) return std::nullopt;
  return folding + halving + doubling + unfolding;
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

/// Of an allreduce or one of its phases; of halving-doubling, NHR and NB also with a root.
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

/// Of an alltoall or a send-recv, or with a root: HCCL's formulas of ring broadcast, star and pairwise, for the others
/// the sums of their steps, which are in the headers of the algorithms.
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

bool moves_nothing(const FormulaTerms& terms) { return terms.steps == 0 && terms.bytes == 0; }

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
  if (moves_nothing(terms)) return 0;
  const auto step = static_cast<Bytes>(terms.bytes / std::max(terms.steps, 1.0));
  const BytesPerSecond bandwidth = terms.access == sim::Access::read ? level.read : level.write;
  const Seconds reducing = level.inline_reduce ? 0 : terms.reduced / tasks.reduce_bandwidth;
  return terms.steps * alpha_of(level, tasks, step) + terms.bytes / bandwidth + reducing;
}

/// Makes the level as slow as the route.
void slow_down(LevelCosts& level, const sim::Route& route, const sim::Cluster& cluster) {
  const BytesPerSecond capacity = cluster.capacity(route.slowest);
  if (route.transport == sim::Transport::rdma) level.transport = sim::Transport::rdma;
  level.latency = std::max(level.latency, route.latency);
  level.write = std::min(level.write, capacity / route.write_factor);
  level.read = std::min(level.read, capacity / route.read_factor);
}

}  // namespace

FormulaTerms& FormulaTerms::operator+=(const FormulaTerms& other) {
  steps += other.steps;
  bytes += other.bytes;
  reduced += other.reduced;
  return *this;
}

std::optional<FormulaTerms> formula_terms(std::string_view algorithm, Collective collective, Rank ranks, double payload,
                                          std::uint32_t rings) {
  if (ranks == 1) return FormulaTerms{};
  const auto terms = phase_terms(algorithm, collective, ranks, payload, rings);
  return terms.has_value() ? terms : other_terms(algorithm, collective, ranks, payload, rings);
}

std::optional<Formula> formula_of(std::string_view algorithm, const Operation& operation, const Topology& topology,
                                  const device::Soc& soc) {
  if (!operation.counts.empty()) return std::nullopt;
  const Collective collective = operation.collective;
  const std::uint32_t rings = soc.generation == device::Generation::a1 ? 4 : 2;
  const auto bytes = static_cast<double>(operation.payload());
  constexpr std::string_view prefix = "hierarchical(";
  if (!algorithm.starts_with(prefix)) {
    const auto terms = formula_terms(algorithm, collective, topology.ranks, bytes, rings);
    if (!terms.has_value()) return std::nullopt;
    return topology.servers > 1 ? Formula{{}, *terms} : Formula{*terms, {}};
  }
  const std::size_t comma = algorithm.find(", ");
  if (comma == std::string_view::npos || !algorithm.ends_with(')') || topology.ranks_per_server == 0) {
    return std::nullopt;
  }
  const std::string_view inside = algorithm.substr(prefix.size(), comma - prefix.size());
  const std::string_view between = algorithm.substr(comma + 2, algorithm.size() - comma - 3);
  const Rank in_server = topology.ranks_per_server;
  const auto inner = formula_terms(inside, collective, in_server, bytes, rings);
  const auto outer = formula_terms(between, collective, topology.servers, bytes / in_server, rings);
  if (!inner.has_value() || !outer.has_value()) return std::nullopt;
  return Formula{*inner, *outer};
}

std::string to_string(const Formula& formula, Bytes payload) {
  if (moves_nothing(formula.between)) return to_string(formula.inside, payload);
  if (moves_nothing(formula.inside)) return to_string(formula.between, payload);
  return fmt::format("inside {}; between {}", to_string(formula.inside, payload), to_string(formula.between, payload));
}

FormulaCosts formula_costs(const Communicator& communicator, sim::Cluster& cluster, const device::Soc& soc,
                           const device::TaskCosts& tasks, DataType type, ReduceOp op) {
  constexpr BytesPerSecond unlimited = std::numeric_limits<BytesPerSecond>::infinity();
  FormulaCosts costs{{.write = unlimited, .read = unlimited}, {.write = unlimited, .read = unlimited}, tasks};
  const Rank first = communicator.ranks.front();
  bool between_known = false;
  for (const Rank rank : communicator.ranks) {
    const bool same_server = cluster.npu(rank).server == cluster.npu(first).server;
    if (rank == first || (!same_server && between_known)) continue;
    slow_down(same_server ? costs.inside : costs.between, cluster.route(first, rank), cluster);
    between_known = between_known || !same_server;
  }
  for (LevelCosts* const level : {&costs.inside, &costs.between}) {
    level->inline_reduce = device::inline_reduce(soc, type, op, Operation{}.alignment, level->transport);
  }
  return costs;
}

Seconds alpha_of(const LevelCosts& level, const device::TaskCosts& tasks, Bytes step) {
  return 2 * (tasks.notify_record + tasks.notify_wait) + tasks.transfer_setup(level.transport, step) + level.latency;
}

Seconds formula_time(const Formula& formula, const FormulaCosts& costs) {
  return terms_time(formula.inside, costs.inside, costs.tasks) +
         terms_time(formula.between, costs.between, costs.tasks);
}

}  // namespace hcclsim::hccl
