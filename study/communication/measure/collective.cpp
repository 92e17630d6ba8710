#include "study/communication/measure/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/check/check.hpp"
#include "hccl/collective/formula.hpp"
#include "hccl/collective/selection/explain.hpp"
#include "hccl/comm/groups.hpp"
#include "hccl/runtime/collective/bottleneck.hpp"
#include "hccl/runtime/collective/expansion.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "hccl/verify/topology_cuts.hpp"
#include "hccl/verify/value_check.hpp"
#include "sim/faults/fault_plan.hpp"
#include "study/communication/measure/measurement_notes.hpp"
#include "study/platform/on_platform.hpp"
#include "study/platform/routing_spread.hpp"

namespace hcclsim::study {
namespace {

/// Of a collective in the mode of HCCL_OP_EXPANSION_MODE, or on vector cores.
device::TaskCosts costs_of(const LoadedPlatform& platform, bool on_vector_cores) {
  return on_vector_cores ? costs_in(hccl::OpExpansion::aiv, platform.costs) : platform.costs;
}

/// A result is computed on real data up to this size of all buffers of all ranks.
constexpr Bytes most_real_data = Bytes{64} << 20U;
constexpr std::uint64_t check_seed = 1;

/// Beyond the limit for real data the proof stands for all data.
MeasurementCheck check_of(const hccl::Schedule& schedule, device::WorkerPool& workers) {
  if (hccl::buffer_bytes(schedule) <= most_real_data) {
    const hccl::ValueCheck check = check_values(schedule, check_seed, workers);
    if (check.ok()) return {};
    return {.ok = false,
            .problem = fmt::format("{} wrong elements, the first is element {} of rank {}: {} instead of {}",
                                   check.wrong, check.first_wrong->element, check.first_wrong->rank,
                                   check.first_wrong->found, check.first_wrong->expected)};
  }
  const hccl::CheckReport proof = hccl::check(schedule);
  return {.ok = proof.ok, .proved = true, .problem = proof.ok ? "" : proof.verdict};
}

/// Why a size has its algorithm; the others are simulated, too, all with the costs of its mode.
ExplainedCollective explain_size(const LoadedPlatform& platform, const hccl::Communicator& communicator,
                                 const hccl::CollectiveRequest& request, bool on_vector_cores) {
  const device::TaskCosts costs = costs_of(platform, on_vector_cores);
  hccl::Explanation explanation = explain(request, communicator, platform.cluster, platform.soc, costs);
  explanation.on_vector_cores = on_vector_cores;
  ExplainedCollective result =
      explained(explanation, std::string(name_of(request.operation.collective)), request.operation.payload());
  if (request.operation.ranks > most_explained_by_simulation) return result;
  std::vector<std::vector<hccl::CollectiveCall>> points;
  for (const hccl::Alternative& alternative : explanation.alternatives) {
    if (alternative.schedule == nullptr) continue;
    points.push_back({{.name = alternative.algorithm, .schedule = alternative.schedule, .ranks = communicator.ranks}});
  }
  const hccl::SimulateOptions simulate{.launch = request.launch, .fold = true};
  const auto times = simulate_each(platform.cluster, platform.soc, costs, simulate, points);
  for (std::size_t i = 0; i < times.size(); ++i) result.algorithms[i].simulated = times[i].calls.front().duration;
  return result;
}

/// HCCL's calls return at once if there is nothing to communicate, and start nothing on the device.
void add_empty_row(Measurement& measurement, bool check) {
  MeasurementRow row{.algorithm = "none", .limited_by = "nothing"};
  if (check) row.check.emplace();
  measurement.rows.push_back(std::move(row));
  measurement.on.notes.emplace_back("of 0 bytes HCCL starts nothing: its calls return at once");
}

/// Says of how many sizes some ranks stand for all.
/// Ranks that measure together, and how they lie.
struct MeasuredGroup {
  hccl::Communicator communicator;
  hccl::Topology topology;
};

std::vector<MeasuredGroup> groups_of(const MeasureSpec& spec, LoadedPlatform& platform) {
  std::vector<hccl::Communicator> groups = spec.groups;
  if (groups.empty())
    groups.push_back(communicator_of(spec, platform));
  else
    hccl::require_groups(groups, platform.participating(0));
  std::vector<MeasuredGroup> all;
  for (hccl::Communicator& group : groups) {
    if (group.ranks.size() != groups.front().ranks.size()) {
      bad_input("group", "{} has {} ranks and {} has {}; groups that are measured together have the same number",
                groups.front().name, groups.front().ranks.size(), group.name, group.ranks.size());
    }
    platform.note_group(group.ranks);
    hccl::Topology topology = hccl::topology_of(group, platform.cluster);
    all.push_back({group, std::move(topology)});
  }
  if (all.size() > 1) {
    platform.notes.push_back(fmt::format(
        "{} groups carry out the collective at the same time; a row is of the one that takes longest", all.size()));
  }
  return all;
}

/// What the formulas and bounds of a group count with.
struct ReferenceCosts {
  hccl::FormulaCosts formula;
  hccl::TopologyBounds bounds;
};

std::vector<ReferenceCosts> reference_costs(const LoadedPlatform& platform, const std::vector<MeasuredGroup>& groups,
                                            const hccl::Operation& operation, bool on_vector_cores) {
  constexpr Rank most_ranks = 128;  // more would take a good part of the time of small measurements
  const device::TaskCosts costs = costs_of(platform, on_vector_cores);
  std::vector<ReferenceCosts> all;
  for (const MeasuredGroup& group : groups) {
    const hccl::Communicator& ranks = group.communicator;
    all.push_back({hccl::formula_costs(ranks, platform.cluster, platform.soc, costs, operation.type, operation.op),
                   hccl::topology_bounds(platform.cluster, ranks.ranks, costs, most_ranks)});
  }
  return all;
}

/// Without the communicator's buffer there are no windows.
std::vector<std::string_view> obeyed_variables(const hccl::CollectiveRequest& request) {
  std::vector<std::string_view> obeyed{"HCCL_ALGO", "HCCL_DETERMINISTIC", "HCCL_EXEC_TIMEOUT",
                                       "HCCL_INTER_HCCS_DISABLE"};
  if (request.launch == hccl::LaunchMode::op) {
    obeyed.emplace_back("HCCL_OP_EXPANSION_MODE");
    obeyed.insert(obeyed.end(), queue_pairs.begin(), queue_pairs.end());
  }
  if (request.launch == hccl::LaunchMode::op && !request.zero_copy) obeyed.emplace_back("HCCL_BUFFSIZE");
  return obeyed;
}

using Points = std::vector<std::vector<hccl::CollectiveCall>>;

/// HCCL_OP_EXPANSION_MODE asks for vector cores where a collective may use them.
bool asks_for_vector_cores(const LoadedPlatform& platform, const hccl::CollectiveRequest& request) {
  return platform.config.op_expansion == hccl::OpExpansion::aiv && request.launch == hccl::LaunchMode::op;
}

/// Why vector cores do not carry the calls out; empty: they do.
std::string refusal_of_vector_cores(const LoadedPlatform& platform, const hccl::CollectiveRequest& request,
                                    const hccl::Topology& topology, const std::vector<hccl::CollectiveCall>& calls) {
  hccl::Operation operation = request.operation;
  operation.elements = calls.front().schedule->elements;
  return refused_by_vector_cores(operation, topology, platform.soc.generation, request.config.determinism);
}

/// HCCL carries the calls out on vector cores.
bool are_on_vector_cores(const LoadedPlatform& platform, const hccl::CollectiveRequest& request,
                         const hccl::Topology& topology, const std::vector<hccl::CollectiveCall>& calls) {
  return asks_for_vector_cores(platform, request) &&
         refusal_of_vector_cores(platform, request, topology, calls).empty();
}

/// Each point by itself, those that HCCL carries out on vector cores with their costs; notes why others are not, though
/// it was asked for.
std::vector<hccl::SimulatedCollectives> simulate_points(const LoadedPlatform& platform,
                                                        const hccl::CollectiveRequest& request,
                                                        const hccl::Topology& topology,
                                                        const hccl::SimulateOptions& simulate, const Points& points,
                                                        std::vector<std::string>& notes) {
  const auto results_of = [&](const device::TaskCosts& costs, const Points& of) {
    return of.empty() ? std::vector<hccl::SimulatedCollectives>{}
                      : simulate_each(platform.cluster, platform.soc, costs, simulate, of);
  };
  if (!asks_for_vector_cores(platform, request)) return results_of(platform.costs, points);
  Points on_vector_cores;
  Points others;
  std::vector<bool> is_other;
  std::set<std::string> refusals;
  for (const std::vector<hccl::CollectiveCall>& calls : points) {
    const std::string refusal = refusal_of_vector_cores(platform, request, topology, calls);
    if (!refusal.empty()) refusals.insert(refusal);
    is_other.push_back(!refusal.empty());
    (refusal.empty() ? on_vector_cores : others).push_back(calls);
  }
  for (const std::string& refusal : refusals) {
    notes.push_back(fmt::format("HCCL_OP_EXPANSION_MODE AIV {}: HCCL takes its default mode", refusal));
  }
  std::vector<hccl::SimulatedCollectives> of_vector_cores = results_of(costs_of(platform, true), on_vector_cores);
  std::vector<hccl::SimulatedCollectives> of_others = results_of(platform.costs, others);
  auto next_other = of_others.begin();
  auto next = of_vector_cores.begin();
  std::vector<hccl::SimulatedCollectives> merged;
  for (const bool other : is_other) merged.push_back(std::move(*(other ? next_other++ : next++)));
  return merged;
}

/// What a measurement simulates.
struct Simulated {
  const hccl::CollectiveRequest& request;
  const hccl::Topology& topology;
  const hccl::SimulateOptions& options;
  const Points& points;
};

/// Of each point the slowest group's time.
std::vector<Seconds> times_of(const LoadedPlatform& platform, const Simulated& simulated) {
  std::vector<std::string> ignored;
  std::vector<Seconds> times;
  for (const auto& result :
       simulate_points(platform, simulated.request, simulated.topology, simulated.options, simulated.points, ignored)) {
    times.push_back(result.calls[slowest(result)].per_iteration);
  }
  return times;
}

/// Times of all points with these assumptions at an end of their ranges.
ChildOf<std::vector<Seconds>> times_at(LoadedPlatform& platform, const Simulated& simulated,
                                       std::vector<Assumption> assumptions, RangeEnd end) {
  return ChildOf<std::vector<Seconds>>([&platform, simulated, assumptions = std::move(assumptions), end] {
    assume(platform.cluster, assumptions, end);
    platform.costs = assumed(platform.costs, assumptions, end);
    return times_of(platform, simulated);
  });
}

/// What the hash of routing ecmp does to each point; empty if there is none.
std::vector<RoutingSpread> routing_of(const LoadedPlatform& platform, const Simulated& simulated, std::uint32_t seeds) {
  if (platform.cluster.routing().kind != sim::RoutingKind::ecmp || seeds == 0) return {};
  return RoutingTimes(platform.cluster, seeds, [&] { return times_of(platform, simulated); }).finish();
}

/// The range of each point; with `each` what every assumption alone does, too.
std::vector<Uncertainty> ranges_of(LoadedPlatform& platform, const Simulated& simulated, std::span<const Rank> ranks,
                                   bool each) {
  const bool by_host = simulated.options.launch == hccl::LaunchMode::op;
  const bool by_vector_cores = by_host && platform.config.op_expansion == hccl::OpExpansion::aiv;
  const std::vector<Assumption> assumptions =
      assumptions_of(platform.cluster, ranks, {.host = by_host, .vector_cores = by_vector_cores});
  const auto at = [&](const std::vector<Assumption>& some, RangeEnd end) {
    return times_at(platform, simulated, some, end).result();
  };
  const std::vector<Seconds> at_fast_end = at(assumptions, RangeEnd::fast);
  const std::vector<Seconds> at_slow_end = at(assumptions, RangeEnd::slow);
  std::vector<Uncertainty> ranges;
  for (std::size_t i = 0; i < at_fast_end.size(); ++i) ranges.push_back(range_between(at_fast_end[i], at_slow_end[i]));
  for (std::size_t a = 0; each && a < assumptions.size(); ++a) {
    const std::vector<Seconds> fast = at({assumptions[a]}, RangeEnd::fast);
    const std::vector<Seconds> slow = at({assumptions[a]}, RangeEnd::slow);
    for (std::size_t i = 0; i < fast.size(); ++i) ranges[i].effects.push_back({assumptions[a].text, fast[i], slow[i]});
  }
  for (Uncertainty& range : ranges) sort_effects(range);
  return ranges;
}

/// The links during one call of all groups at once, in a simulation of its own.
LinkReport links_during(const LoadedPlatform& platform, const Simulated& simulated, std::size_t most_links,
                        const std::vector<MeasuredGroup>& groups) {
  return run_in_child([&] {
    hccl::SimulateOptions once = simulated.options;
    once.iterations = 1;
    once.warmups = 0;
    once.record_flows = true;
    std::vector<hccl::CollectiveCall> calls = simulated.points.back();
    for (std::size_t i = 0; groups.size() > 1 && i < calls.size(); ++i) calls[i].name = groups[i].communicator.name;
    const device::TaskCosts costs =
        costs_of(platform, are_on_vector_cores(platform, simulated.request, simulated.topology, calls));
    const auto result = hccl::simulate_collectives(platform.cluster, platform.soc, costs, once, calls);
    return link_report(platform.cluster, result, calls, most_links, once.faults.get());
  });
}

std::vector<Rank> all_ranks(const std::vector<MeasuredGroup>& groups) {
  std::vector<Rank> all;
  for (const MeasuredGroup& group : groups) {
    all.insert(all.end(), group.communicator.ranks.begin(), group.communicator.ranks.end());
  }
  return all;
}

/// Of each size the calls of all groups.
Points points_of(const hccl::CollectiveRequest& request, const std::vector<Bytes>& sizes,
                 const std::vector<MeasuredGroup>& groups, const device::Soc& soc) {
  Points points;
  for (const Bytes size : sizes) {
    std::vector<hccl::CollectiveCall>& calls = points.emplace_back();
    for (const MeasuredGroup& group : groups) {
      calls.push_back(call_of(request, size, group.topology, soc, group.communicator.ranks));
      calls.back().stream = static_cast<std::uint32_t>(calls.size() - 1);
    }
  }
  return points;
}

/// Makes the row of a size from what was simulated of it. All that is passed must outlive it.
class RowMaker {
 public:
  RowMaker(const LoadedPlatform& platform, const std::vector<MeasuredGroup>& groups, const Simulated& simulated,
           const MeasureSpec& spec)
      : platform_(platform), groups_(groups), simulated_(simulated), spec_(spec), request_(simulated.request) {}

  /// Adds the explanation of an algorithm with the last size that uses it.
  MeasurementRow row(Bytes size, std::size_t point, const hccl::SimulatedCollectives& result,
                     std::vector<ExplainedCollective>& explanation) {
    const std::vector<hccl::CollectiveCall>& calls = simulated_.points[point];
    const std::size_t group = slowest(result);
    const hccl::CollectiveTime& call = result.calls[group];
    const hccl::Topology& topology = groups_[group].topology;
    const hccl::Schedule& schedule = *calls[group].schedule;
    const bool on_vector_cores = are_on_vector_cores(platform_, request_, simulated_.topology, calls);
    const ReferenceCosts& reference = references_of(on_vector_cores)[group];
    MeasurementRow row{.size = size,
                       .algorithm = schedule.algorithm,
                       .time = call.per_iteration,
                       .speed = bandwidth_of(schedule, call.per_iteration),
                       .bound = least_time(schedule, reference.bounds),
                       .limited_by = bottleneck_of(call, platform_.cluster).name,
                       .folded = result.folded};
    request_.operation.elements = schedule.elements;
    const std::vector<hccl::HierarchyLevel> levels = select(request_, topology, platform_.soc).levels;
    if (const auto formula = formula_of_windows(schedule, topology, platform_.soc, levels)) {
      row.formula = formula_time(*formula, reference.formula);
      row.formula_text = to_string(*formula, schedule.payload());
    }
    if (spec_.check) row.check = check_of(schedule, workers_);
    const bool last = point + 1 == simulated_.points.size() ||
                      simulated_.points[point + 1].front().schedule->algorithm != schedule.algorithm;
    if (spec_.explain && last && topology.ranks > 1) {
      explanation.push_back(explain_size(platform_, groups_[group].communicator, request_, on_vector_cores));
    }
    return row;
  }

 private:
  const std::vector<ReferenceCosts>& references_of(bool on_vector_cores) {
    std::vector<ReferenceCosts>& known = references_.at(on_vector_cores ? 1 : 0);
    if (known.empty()) known = reference_costs(platform_, groups_, request_.operation, on_vector_cores);
    return known;
  }

  const LoadedPlatform& platform_;
  const std::vector<MeasuredGroup>& groups_;
  const Simulated& simulated_;
  const MeasureSpec& spec_;
  hccl::CollectiveRequest request_;
  std::array<std::vector<ReferenceCosts>, 2> references_;  // of both modes, as far as they are needed
  device::WorkerPool workers_{1};
};

}  // namespace

bool Measurement::ok() const {
  return std::none_of(rows.begin(), rows.end(),
                      [](const MeasurementRow& row) { return row.check.has_value() && !row.check->ok; });
}

LoadedPlatform platform_of(const MeasureSpec& spec, sim::Cluster& cluster) {
  return {spec.platform.rank_table, spec.platform.hccl_settings, obeyed_variables(spec.request), cluster};
}

hccl::CollectiveCall call_of(hccl::CollectiveRequest request, Bytes size, const hccl::Topology& topology,
                             const device::Soc& soc, const std::vector<Rank>& ranks) {
  hccl::Operation& operation = request.operation;
  operation.elements = elements_of_size(size, operation.collective, operation.ranks, operation.type);
  return {.name = std::string(name_of(operation.collective)),
          .schedule = make_collective(request, topology, soc),
          .ranks = ranks};
}

hccl::Communicator communicator_of(const MeasureSpec& spec, const LoadedPlatform& platform) {
  const sim::Cluster& cluster = platform.cluster;
  if (spec.npus_per_server == 0) return hccl::world_communicator(platform.participating(spec.ranks));
  std::vector<Rank> of_server(cluster.servers(), 0);
  std::vector<Rank> ranks;
  for (Rank npu = 0; npu < cluster.size(); ++npu) {
    if (of_server[cluster.npu(npu).server]++ < spec.npus_per_server) ranks.push_back(npu);
  }
  if (ranks.size() < std::size_t{cluster.servers()} * spec.npus_per_server) {
    bad_input("option", "-p {}: not every server of {} has so many NPUs", spec.npus_per_server, cluster.path());
  }
  if (spec.ranks > ranks.size()) {
    bad_input("option", "--ranks {}: {} has {} NPUs with this -p", spec.ranks, cluster.path(), ranks.size());
  }
  if (spec.ranks > 0) ranks.resize(spec.ranks);
  hccl::Communicator communicator = hccl::world_communicator(static_cast<Rank>(ranks.size()));
  communicator.ranks = std::move(ranks);
  return communicator;
}

Measurement measure_collective(const MeasureSpec& spec, std::shared_ptr<SharedWork> work) {
  return on_cluster(spec.platform, spec.network,
                    [&](sim::Cluster& cluster) { return measure_collective(spec, cluster, work); });
}

Measurement measure_collective(const MeasureSpec& spec, sim::Cluster& cluster, std::shared_ptr<SharedWork> work) {
  LoadedPlatform platform = platform_of(spec, cluster);
  const std::vector<MeasuredGroup> groups = groups_of(spec, platform);
  const hccl::Topology& first_shape = groups.front().topology;
  const std::vector<Rank> ranks = all_ranks(groups);
  hccl::CollectiveRequest request = spec.request;
  request.config = platform.config;
  request.operation.ranks = first_shape.ranks;
  Measurement measurement{.on = {},
                          .ranks = first_shape.ranks,
                          .rows = {},
                          .explanation = {},
                          .link_sources = link_sources(cluster, ranks),
                          .links = {}};
  platform.note_algorithm(spec.platform.hccl_settings, request, first_shape);
  measurement.on = platform.facts();
  std::vector<Bytes> sizes = sizes_of(spec.sizes, request.operation.collective, first_shape.ranks);
  if (sizes.front() == 0) {
    add_empty_row(measurement, spec.check);
    sizes.erase(sizes.begin());
  }
  const Points points = points_of(request, sizes, groups, platform.soc);
  const hccl::SimulateOptions options{.network = spec.network,
                                      .launch = request.launch,
                                      .iterations = spec.iterations,
                                      .warmups = spec.warmups,
                                      .exec_timeout = request.config.exec_timeout,
                                      .fold = true,
                                      .faults = sim::FaultPlan::of(cluster, spec.faults, cluster.size(), ranks),
                                      .work = std::move(work)};
  const Simulated simulated{request, first_shape, options, points};
  note_left_out(spec, cluster, measurement.on.notes);
  const bool ranged = spec.uncertainty && spec.faults.empty();  // faults have dates, and the ends of ranges others
  std::vector<Uncertainty> ranges;
  if (ranged) ranges = ranges_of(platform, simulated, ranks, spec.explained_uncertainty);
  std::vector<RoutingSpread> routing = routing_of(platform, simulated, spec.faults.empty() ? spec.routing_seeds : 0);
  if (spec.links > 0 && !cluster.splits_transfers() && !points.empty()) {
    measurement.links = links_during(platform, simulated, spec.links, groups);
  }
  const auto results = simulate_points(platform, request, first_shape, options, points, measurement.on.notes);
  note_dates_of_faults(spec, results, measurement.on.notes);
  RowMaker rows(platform, groups, simulated, spec);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    MeasurementRow row = rows.row(sizes[i], i, results[i], measurement.explanation);
    if (ranged) {
      ranges[i].include(row.time);
      row.uncertainty = std::move(ranges[i]);
    }
    if (!routing.empty()) row.routing = std::move(routing[i]);
    measurement.rows.push_back(std::move(row));
  }
  note_folding(measurement, static_cast<Rank>(ranks.size()));
  note_overlap(measurement, results);
  note_shared_links(measurement);
  return measurement;
}

}  // namespace hcclsim::study
