#include "cli/collective_measurement.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "cli/explained_collective.hpp"
#include "device/numerics/worker_pool.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/check/check.hpp"
#include "hccl/collective/formula.hpp"
#include "hccl/runtime/bandwidth.hpp"
#include "hccl/runtime/bottleneck.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "hccl/verify/topology_cuts.hpp"
#include "hccl/verify/value_check.hpp"

namespace hcclsim::cli {
namespace {

/// Up to so many bytes in all buffers of all ranks a result is computed on real data.
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

/// The platform as all sizes see it.
struct MeasurementSetting {
  sim::Cluster& cluster;
  const device::Soc& soc;
  const device::TaskCosts& costs;
  const hccl::Communicator& communicator;
};

/// Why a size has its algorithm; the others are simulated, too.
ExplainedCollective explain_size(const MeasurementSetting& setting, const hccl::CollectiveRequest& request) {
  const hccl::Explanation explanation =
      explain(request, setting.communicator, setting.cluster, setting.soc, setting.costs);
  ExplainedCollective result =
      explained(explanation, std::string(name_of(request.operation.collective)), request.operation.payload());
  if (request.operation.ranks > most_explained_by_simulation) return result;
  std::vector<std::vector<hccl::CollectiveCall>> points;
  for (const hccl::Alternative& alternative : explanation.alternatives) {
    if (alternative.schedule == nullptr) continue;
    points.push_back(
        {{.name = alternative.algorithm, .schedule = alternative.schedule, .ranks = setting.communicator.ranks}});
  }
  const hccl::SimulateOptions simulate{.launch = request.launch, .fold = true};
  const auto times = simulate_each(setting.cluster, setting.soc, setting.costs, simulate, points);
  for (std::size_t i = 0; i < times.size(); ++i) result.algorithms[i].simulated = times[i].calls.front().duration;
  return result;
}

/// HCCL's calls return at once if there is nothing to communicate, and start nothing on the device.
void add_empty_row(Measurement& measurement, bool check) {
  MeasurementRow row{.algorithm = "none", .limited_by = "nothing"};
  if (check) row.check.emplace();
  measurement.rows.push_back(std::move(row));
  measurement.notes.emplace_back("of 0 bytes HCCL starts nothing: its calls return at once");
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
  measurement.notes.push_back(
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
    measurement.notes.push_back(
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
    measurement.notes.push_back(
        fmt::format("HCCL's formulas suppose that no two transfers share a link; of {} bytes the formula gives {:.2f} "
                    "us, but the links that are shared take at least {:.2f} us",
                    row->size, *row->formula / microsecond, row->bound / microsecond));
    return;
  }
}

/// Without the communicator's buffer there are no windows.
std::vector<std::string_view> obeyed_variables(const MeasurementOptions& options) {
  std::vector<std::string_view> obeyed{"HCCL_ALGO", "HCCL_DETERMINISTIC", "HCCL_EXEC_TIMEOUT",
                                       "HCCL_INTER_HCCS_DISABLE"};
  if (options.launch == hccl::LaunchMode::op && !options.zero_copy) obeyed.emplace_back("HCCL_BUFFSIZE");
  return obeyed;
}

/// One call of the collective for each size.
std::vector<std::vector<hccl::CollectiveCall>> points_of(const std::vector<Bytes>& sizes,
                                                         hccl::CollectiveRequest request,
                                                         const hccl::Topology& topology, const device::Soc& soc,
                                                         const std::vector<Rank>& ranks) {
  hccl::Operation& operation = request.operation;
  std::vector<std::vector<hccl::CollectiveCall>> points;
  for (const Bytes size : sizes) {
    operation.elements = elements_of_size(size, operation.collective, operation.ranks, operation.type);
    points.push_back({{.name = std::string(name_of(operation.collective)),
                       .schedule = make_collective(request, topology, soc),
                       .ranks = ranks}});
  }
  return points;
}

}  // namespace

LoadedPlatform platform_of(const MeasurementOptions& options, sim::Cluster& cluster) {
  return LoadedPlatform(options.rank_table, options.hccl_settings, obeyed_variables(options), cluster);
}

hccl::Communicator communicator_of(const MeasurementOptions& options, const LoadedPlatform& platform) {
  const sim::Cluster& cluster = platform.cluster;
  if (options.npus_per_server == 0) return hccl::world_communicator(platform.participating(options.ranks));
  std::vector<Rank> of_server(cluster.servers(), 0);
  std::vector<Rank> ranks;
  for (Rank npu = 0; npu < cluster.size(); ++npu) {
    if (of_server[cluster.npu(npu).server]++ < options.npus_per_server) ranks.push_back(npu);
  }
  if (ranks.size() < std::size_t{cluster.servers()} * options.npus_per_server) {
    bad_input("option", "-p {}: not every server of {} has so many NPUs", options.npus_per_server, cluster.path());
  }
  if (options.ranks > ranks.size()) {
    bad_input("option", "--ranks {}: {} has {} NPUs with this -p", options.ranks, cluster.path(), ranks.size());
  }
  if (options.ranks > 0) ranks.resize(options.ranks);
  hccl::Communicator communicator = hccl::world_communicator(static_cast<Rank>(ranks.size()));
  communicator.ranks = std::move(ranks);
  return communicator;
}

Measurement measure_collective(const MeasurementOptions& options, sim::Cluster& cluster) {
  LoadedPlatform platform = platform_of(options, cluster);
  const device::Soc& soc = platform.soc;
  const device::TaskCosts& costs = platform.costs;
  Measurement measurement{.platform = std::filesystem::path(cluster.path()).filename().string(),
                          .rank_table = platform.rank_table,
                          .npu = soc.name,
                          .operation = {},
                          .rows = {},
                          .explanation = {},
                          .link_sources = {},
                          .unmodelled = platform.unmodelled,
                          .notes = {}};
  const hccl::Communicator communicator = communicator_of(options, platform);
  measurement.link_sources = link_sources(cluster, communicator.ranks);
  const hccl::Topology topology = hccl::topology_of(communicator, cluster);
  hccl::CollectiveRequest request{.operation = options.operation,
                                  .algorithm = options.algorithm,
                                  .launch = options.launch,
                                  .zero_copy = options.zero_copy};
  request.config = platform.config;
  request.levels = options.levels;

  request.operation.ranks = topology.ranks;
  platform.note_algorithm(options.hccl_settings, request, topology);
  measurement.notes = platform.notes;
  std::vector<Bytes> sizes = sizes_of(options.sizes, request.operation.collective, topology.ranks);
  if (sizes.front() == 0) {
    add_empty_row(measurement, options.check);
    sizes.erase(sizes.begin());
  }
  const auto points = points_of(sizes, request, topology, soc, communicator.ranks);
  measurement.operation = request.operation;
  const hccl::SimulateOptions simulate{.network = options.network,
                                       .launch = options.launch,
                                       .iterations = options.iterations,
                                       .warmups = options.warmups,
                                       .exec_timeout = request.config.exec_timeout,
                                       .fold = true};
  const auto results = simulate_each(cluster, soc, costs, simulate, points);

  const hccl::FormulaCosts formula_costs =
      hccl::formula_costs(communicator, cluster, soc, costs, options.operation.type, options.operation.op);
  constexpr Rank most_ranks = 128;  // more would take a good part of the time of small measurements
  const hccl::TopologyBounds bounds = hccl::topology_bounds(cluster, communicator.ranks, costs, most_ranks);
  device::WorkerPool workers(1);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const hccl::Schedule& schedule = *points[i].front().schedule;
    const Seconds time = results[i].calls.front().per_iteration;
    const hccl::Bandwidth speed = bandwidth_of(schedule, time);
    MeasurementRow row{
        .size = sizes[i],
        .algorithm = schedule.algorithm,
        .time = time,
        .algbw = speed.algbw,
        .busbw = speed.busbw,
        .bound = least_time(schedule, bounds),
        .limited_by = bottleneck_of(results[i].calls.front(), cluster, launch_of(costs, options.launch)).name,
        .servers_alike = results[i].servers_alike};
    request.operation.elements = schedule.elements;
    const std::vector<hccl::HierarchyLevel> levels = select(request, topology, soc).levels;
    if (const auto formula = formula_of_windows(schedule, topology, soc, levels)) {
      row.formula = formula_time(*formula, formula_costs);
      row.formula_text = to_string(*formula, schedule.payload());
    }
    if (options.check) row.check = check_of(schedule, workers);
    const bool last = i + 1 == sizes.size() || points[i + 1].front().schedule->algorithm != schedule.algorithm;
    if (options.explain && last && topology.ranks > 1) {
      measurement.explanation.push_back(explain_size({cluster, soc, costs, communicator}, request));
    }
    measurement.rows.push_back(std::move(row));
  }
  note_folding(measurement);
  note_overlap(measurement, results);
  note_shared_links(measurement);
  return measurement;
}

}  // namespace hcclsim::cli
