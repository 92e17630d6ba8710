#include "study/measure/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/check/check.hpp"
#include "hccl/collective/formula.hpp"
#include "hccl/collective/selection/explain.hpp"
#include "hccl/runtime/bottleneck.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "hccl/verify/topology_cuts.hpp"
#include "hccl/verify/value_check.hpp"

namespace hcclsim::study {
namespace {

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

/// Why a size has its algorithm; the others are simulated, too.
ExplainedCollective explain_size(const LoadedPlatform& platform, const hccl::Communicator& communicator,
                                 const hccl::CollectiveRequest& request) {
  const hccl::Explanation explanation = explain(request, communicator, platform.cluster, platform.soc, platform.costs);
  ExplainedCollective result =
      explained(explanation, std::string(name_of(request.operation.collective)), request.operation.payload());
  if (request.operation.ranks > most_explained_by_simulation) return result;
  std::vector<std::vector<hccl::CollectiveCall>> points;
  for (const hccl::Alternative& alternative : explanation.alternatives) {
    if (alternative.schedule == nullptr) continue;
    points.push_back({{.name = alternative.algorithm, .schedule = alternative.schedule, .ranks = communicator.ranks}});
  }
  const hccl::SimulateOptions simulate{.launch = request.launch, .fold = true};
  const auto times = simulate_each(platform.cluster, platform.soc, platform.costs, simulate, points);
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

/// Says of how many sizes one server stands for all.
void note_folding(Measurement& measurement) {
  std::size_t folded = 0;
  std::uint32_t servers = 1;
  for (const MeasurementRow& row : measurement.rows) {
    if (row.servers_alike == 1) continue;
    ++folded;
    servers = row.servers_alike;
  }
  if (folded == 0) return;
  measurement.on.notes.push_back(
      fmt::format("of {} one server was simulated; the {} servers are alike in what they do",
                  folded == measurement.rows.size() ? "every size" : fmt::format("{} sizes", folded), servers));
}

/// Says of the largest size whose iterations overlap much, or so that their average is below HCCL's formula of one
/// alone, that they do: ranks that are done begin the next one, as HCCL's do between the events that hccl_test takes
/// the time between.
void note_overlap(Measurement& measurement, const std::vector<hccl::SimulatedCollectives>& results) {
  constexpr double much = 2;
  constexpr double rounding = 1e-9;
  const std::size_t empty_rows = measurement.rows.size() - results.size();
  for (std::size_t i = results.size(); i-- > 0;) {
    const hccl::CollectiveTime& last = results[i].calls.front();
    const MeasurementRow& row = measurement.rows[empty_rows + i];
    const double over = (last.end - last.start) / last.per_iteration;
    const bool below_formula = row.formula.has_value() && row.time < *row.formula * (1 - rounding);
    if (over <= much && (over <= 1 + rounding || !below_formula)) continue;
    measurement.on.notes.push_back(
        fmt::format("iterations overlap: the average is that of the loop, as hccl_test measures it, in which ranks "
                    "that are done begin the next one; of {} bytes the last one takes {:.2f} us from its first rank "
                    "to its last; -n 1 -w 0 measures one alone",
                    row.size, (last.end - last.start) / microsecond));
    return;
  }
}

/// Says what the formulas suppose, of the largest size whose formula is below the bound.
void note_shared_links(Measurement& measurement) {
  constexpr double rounding = 1e-9;
  for (auto row = measurement.rows.rbegin(); row != measurement.rows.rend(); ++row) {
    if (!row->formula.has_value() || *row->formula >= row->bound * (1 - rounding)) continue;
    measurement.on.notes.push_back(
        fmt::format("HCCL's formulas suppose that no two transfers share a link; of {} bytes the formula gives {:.2f} "
                    "us, but the links that are shared take at least {:.2f} us",
                    row->size, *row->formula / microsecond, row->bound / microsecond));
    return;
  }
}

/// Without the communicator's buffer there are no windows.
std::vector<std::string_view> obeyed_variables(const hccl::CollectiveRequest& request) {
  std::vector<std::string_view> obeyed{"HCCL_ALGO", "HCCL_DETERMINISTIC", "HCCL_EXEC_TIMEOUT",
                                       "HCCL_INTER_HCCS_DISABLE"};
  if (request.launch == hccl::LaunchMode::op && !request.zero_copy) obeyed.emplace_back("HCCL_BUFFSIZE");
  return obeyed;
}

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

Measurement measure_collective(const MeasureSpec& spec) {
  return run_in_child([&] {
    sim::Cluster cluster(spec.platform.file, spec.platform.edits);
    return measure_collective(spec, cluster);
  });
}

Measurement measure_collective(const MeasureSpec& spec, sim::Cluster& cluster) {
  LoadedPlatform platform = platform_of(spec, cluster);
  const device::Soc& soc = platform.soc;
  const device::TaskCosts& costs = platform.costs;
  const hccl::Communicator communicator = communicator_of(spec, platform);
  const hccl::Topology topology = hccl::topology_of(communicator, cluster);
  hccl::CollectiveRequest request = spec.request;
  request.config = platform.config;
  request.operation.ranks = topology.ranks;
  Measurement measurement{.on = {},
                          .ranks = topology.ranks,
                          .rows = {},
                          .explanation = {},
                          .link_sources = link_sources(cluster, communicator.ranks)};
  platform.note_algorithm(spec.platform.hccl_settings, request, topology);
  platform.note_group(communicator.ranks);
  measurement.on = platform.facts();
  std::vector<Bytes> sizes = sizes_of(spec.sizes, request.operation.collective, topology.ranks);
  if (sizes.front() == 0) {
    add_empty_row(measurement, spec.check);
    sizes.erase(sizes.begin());
  }
  std::vector<std::vector<hccl::CollectiveCall>> points;
  for (const Bytes size : sizes) points.push_back({call_of(request, size, topology, soc, communicator.ranks)});
  const hccl::SimulateOptions simulate{.network = spec.network,
                                       .launch = request.launch,
                                       .iterations = spec.iterations,
                                       .warmups = spec.warmups,
                                       .exec_timeout = request.config.exec_timeout,
                                       .fold = true};
  const auto results = simulate_each(cluster, soc, costs, simulate, points);

  const hccl::FormulaCosts formula_costs =
      hccl::formula_costs(communicator, cluster, soc, costs, request.operation.type, request.operation.op);
  constexpr Rank most_ranks = 128;  // more would take a good part of the time of small measurements
  const hccl::TopologyBounds bounds = hccl::topology_bounds(cluster, communicator.ranks, costs, most_ranks);
  device::WorkerPool workers(1);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const hccl::Schedule& schedule = *points[i].front().schedule;
    const Seconds time = results[i].calls.front().per_iteration;
    MeasurementRow row{
        .size = sizes[i],
        .algorithm = schedule.algorithm,
        .time = time,
        .speed = bandwidth_of(schedule, time),
        .bound = least_time(schedule, bounds),
        .limited_by = bottleneck_of(results[i].calls.front(), cluster, launch_of(costs, request.launch)).name,
        .servers_alike = results[i].servers_alike};
    request.operation.elements = schedule.elements;
    const std::vector<hccl::HierarchyLevel> levels = select(request, topology, soc).levels;
    if (const auto formula = formula_of_windows(schedule, topology, soc, levels)) {
      row.formula = formula_time(*formula, formula_costs);
      row.formula_text = to_string(*formula, schedule.payload());
    }
    if (spec.check) row.check = check_of(schedule, workers);
    const bool last = i + 1 == sizes.size() || points[i + 1].front().schedule->algorithm != schedule.algorithm;
    if (spec.explain && last && topology.ranks > 1) {
      measurement.explanation.push_back(explain_size(platform, communicator, request));
    }
    measurement.rows.push_back(std::move(row));
  }
  note_folding(measurement);
  note_overlap(measurement, results);
  note_shared_links(measurement);
  return measurement;
}

}  // namespace hcclsim::study
