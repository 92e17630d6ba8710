#include "cli/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/further_simulations.hpp"
#include "cli/iteration.hpp"
#include "cli/numerics_run.hpp"
#include "cli/output.hpp"
#include "cli/platform_path.hpp"
#include "cli/run_explanation.hpp"
#include "cli/run_options.hpp"
#include "cli/run_report.hpp"
#include "cli/timeline.hpp"
#include "hccl/comm/groups.hpp"
#include "hccl/comm/placement.hpp"
#include "hccl/comm/rank_table.hpp"
#include "models/profile.hpp"
#include "models/zoo.hpp"
#include "sim/platform_catalog.hpp"

namespace hcclsim::cli {
namespace {

namespace fs = std::filesystem;

/// HCCL allocates two buffers of HCCL_BUFFSIZE (200 MB unless set) for every communicator.
constexpr Bytes communicator_buffers = 2 * Bytes{200'000'000};

constexpr const char* footer =
    "Examples:\n"
    "  hcclsim run                                          ResNet50 on eight 910A, default split\n"
    "  hcclsim run --hcom-parallel on --split-by-size 80,20 overlap, another split\n"
    "  hcclsim run --platform atlas800t-a2-x2 --batch 256   two servers of eight 910B\n"
    "  hcclsim run --trace timeline.json                    for ui.perfetto.dev\n"
    "  hcclsim run --gradients profile.csv --format json    a measured profile instead of a model\n"
    "  hcclsim run --numerics --iterations 10               real gradients, loss and accuracy\n"
    "  hcclsim run --explain                                why these algorithms, and what others cost\n"
    "  hcclsim run --format json --advice                   with comparisons and advice";

sim::NetworkKind network_of(const RunOptions& options, Rank npus) {
  if (options.network != "auto") {
    return options.network == "simgrid" ? sim::NetworkKind::simgrid : sim::NetworkKind::fluid;
  }
  // A mesh that is asked for moves something between all pairs at once, also between servers.
  const bool mesh =
      options.allreduce == hccl::Algorithm::mesh_one_shot || options.allreduce == hccl::Algorithm::mesh_two_shot;
  return sim::automatic_network(npus, mesh ? std::uint64_t{npus} * (npus - 1) : npus);
}

/// The timeline files that --trace asks for: one, or one per rank in a folder.
struct Timeline {
  std::vector<Rank> ranks;
  OutputFile file;
};

std::vector<Rank> traced_ranks(const RunOptions& options, Rank npus) {
  if (!options.trace_all_ranks) {
    return options.trace_ranks.empty() ? std::vector<Rank>{options.rank} : options.trace_ranks;
  }
  std::vector<Rank> all(npus);
  for (Rank rank = 0; rank < npus; ++rank) all[rank] = rank;
  return all;
}

std::vector<Timeline> open_timelines(const RunOptions& options, Rank npus) {
  std::vector<Timeline> timelines;
  if (options.trace.empty()) return timelines;
  const std::vector<Rank> ranks = traced_ranks(options, npus);
  if (!options.trace.ends_with('/') && !fs::is_directory(options.trace)) {
    timelines.push_back({ranks, OutputFile(options.trace)});
    return timelines;
  }
  for (const Rank rank : ranks) {
    const fs::path path = fs::path(options.trace) / fmt::format("timeline_rank_{}.json", rank);
    timelines.push_back({{rank}, OutputFile(path.string(), OutputFile::Folders::are_made)});
  }
  return timelines;
}

std::string split_name(const RunOptions& options) {
  if (options.split_by_size.has_value()) return fmt::format("by size {}", fmt::join(*options.split_by_size, ","));
  if (options.split_by_idx.has_value()) return fmt::format("by index {}", fmt::join(*options.split_by_idx, ","));
  return options.split == "default" ? "default 96.54/3.46" : options.split;
}

device::Workload load_workload(const RunOptions& options, const device::Soc& soc, Rank npus,
                               std::vector<std::string>& notes) {
  const device::WorkloadOptions how{.amp = options.amp,
                                    .optimizer = options.optimizer,
                                    .gradient_type = options.communication_type,
                                    .communication_buffers = npus > 1 ? communicator_buffers : 0,
                                    .checks = options.gradient_checks()};
  if (options.gradients_file.empty()) {
    const models::Graph graph =
        models::make_model({options.model, options.batch, options.input, options.classes, options.fc_bias});
    return make_workload(graph, soc, how, notes);
  }
  device::Workload workload = make_workload(models::read_gradient_profile(options.gradients_file), soc, how, notes);
  workload.batch = options.batch;
  return workload;
}

/// Whether two NPUs have the same type and state the same figures of it.
bool alike(const sim::Npu& a, const sim::Npu& b) {
  if (a.soc != b.soc && sim::soc_of_property(a.soc) != sim::soc_of_property(b.soc)) return false;
  const auto value = [](const sim::Npu& npu, const sim::NpuProperty& property) {
    const auto found = npu.properties.find(std::string(property.key));
    return found == npu.properties.end() ? std::string_view() : std::string_view(found->second);
  };
  const auto properties = sim::npu_properties();
  return std::all_of(properties.begin(), properties.end(),
                     [&](const sim::NpuProperty& property) { return value(a, property) == value(b, property); });
}

/// Places the ranks of the rank table, if there is one, and returns their number.
std::optional<Rank> place(const RunOptions& options, sim::Cluster& cluster, std::vector<std::string>& notes) {
  if (options.rank_table_of_environment == RankTableOfEnvironment::not_used) {
    notes.emplace_back("RANK_TABLE_FILE is set but not used: --npus says which NPUs take part");
  }
  if (options.rank_table.empty()) return std::nullopt;
  const bool environment = options.rank_table_of_environment == RankTableOfEnvironment::used;
  const std::string origin = environment ? "RANK_TABLE_FILE: " : "";
  try {
    const hccl::RankTable table = hccl::read_rank_table(options.rank_table);
    hccl::place_ranks(table, cluster);
    for (const std::string& note : table.notes) notes.push_back(fmt::format("{}: {}", table.file, note));
    notes.push_back(fmt::format("{}ranks placed as in {}, {} on {} server{}", origin, table.file, table.ranks(),
                                table.servers.size(), table.servers.size() == 1 ? "" : "s"));
    return table.ranks();
  } catch (const Error& error) {
    throw Error(error.code(), error.kind(), origin + error.what());
  }
}

/// The number of NPUs that take part, all of one kind: those of the rank table, or as the options say.
Rank participating(const RunOptions& options, std::optional<Rank> placed, const sim::Cluster& cluster) {
  const Rank npus = placed.value_or(options.npus.value_or(cluster.size()));
  if (npus > cluster.size()) {
    bad_input("option", "--npus {}: {} has {} NPUs; accepted: 1 to {}", npus, cluster.path(), cluster.size(),
              cluster.size());
  }
  if (options.rank >= npus) {
    bad_input("option", "--rank {}: the run has {} NPUs; accepted: 0 to {}", options.rank, npus, npus - 1);
  }
  for (const Rank rank : options.trace_ranks) {
    if (rank >= npus) {
      bad_input("option", "--trace-ranks {}: the run has {} NPUs; accepted: 0 to {}", rank, npus, npus - 1);
    }
  }
  for (Rank rank = 1; rank < npus; ++rank) {
    const sim::Npu& first = cluster.npu(0);
    const sim::Npu& other = cluster.npu(rank);
    if (alike(first, other)) continue;
    bad_input("platform",
              "{}: NPU 0 ({}, {}) and NPU {} ({}, {}) differ{}; NPUs that train together must be of one kind{}",
              cluster.path(), first.name, first.soc, rank, other.name, other.soc,
              first.soc == other.soc ? " in their properties" : "",
              placed.has_value() ? "" : fmt::format(": --npus {} takes those before", rank));
  }
  return npus;
}

/// What HCCL has against the NPUs that take part; empty if nothing.
std::string group_note(const sim::Cluster& cluster, const device::Soc& soc, Rank npus) {
  const hccl::Communicator world = hccl::world_communicator(npus);
  const auto refused = hccl::refused_server(world.ranks, cluster, soc.generation);
  if (!refused.has_value()) return {};
  return fmt::format("HCCL does not accept the {} NPUs of server {} on {}: {}; simulated all the same", refused->npus,
                     refused->server, soc.name, hccl::group_rule_910a);
}

/// Names of the kinds of links as the vendor writes them.
std::string_view title_of(sim::LinkKind kind) {
  constexpr std::array<std::string_view, 6> titles{"HCCS", "PCIe", "SIO", "UB", "RoCE", "other"};
  return titles.at(static_cast<std::size_t>(kind));
}

/// "HCCS 14 GB/s (10..19.3)": used speed and range.
std::string speed_of(const sim::Link& link) {
  const std::string range = fmt::format("({:g}..{:g})", link.low / giga, link.high / giga);
  if (link.read == link.write) return fmt::format("{} {:g} GB/s {}", title_of(link.kind), link.bandwidth / giga, range);
  return fmt::format("{} read {:g} write {:g} GB/s {}", title_of(link.kind), link.read / giga, link.write / giga,
                     range);
}

/// Speeds of the kinds of links that the run uses, with the platform's word on where they come from. Routes inside the
/// first server and to the next one stand for all.
std::vector<LinkSource> link_sources(sim::Cluster& cluster, Rank npus) {
  std::map<sim::LinkKind, LinkSource> kinds;
  for (Rank rank = 1; rank < npus; ++rank) {
    const bool next_server = cluster.npu(rank).server != cluster.npu(0).server;
    for (const sim::LinkId id : cluster.route(0, rank).links) {
      const sim::Link& link = cluster.links()[id];
      if (link.kind == sim::LinkKind::other || kinds.contains(link.kind)) continue;
      const auto source = cluster.property(fmt::format("link.{}.source", name_of(link.kind)));
      kinds[link.kind] = {speed_of(link), source.value_or("platform file")};
    }
    if (next_server) break;
  }
  std::vector<LinkSource> sources;
  for (auto& [kind, source] : kinds) sources.push_back(std::move(source));
  return sources;
}

std::string write_report(const RunReport& report, OutputFormat format) {
  switch (format) {
    case OutputFormat::text:
      return text_report(report);
    case OutputFormat::json:
      return json_report(report);
    case OutputFormat::csv:
      return csv_report(report);
  }
  internal_error("unknown output format {}", static_cast<int>(format));
}

/// Variables of HCCL that change what a run does. All of its reductions are deterministic, as HCCL_DETERMINISTIC asks.
constexpr std::array<std::string_view, 3> modelled_variables{"HCCL_ALGO", "HCCL_DETERMINISTIC", "HCCL_EXEC_TIMEOUT"};

/// Loads everything, simulates, prints and writes. Runs in a child. `session` is there with --numerics.
void simulate_run(const RunOptions& options, const std::string& platform, NumericsSession* session) {
  sim::Cluster cluster(platform);
  std::vector<std::string> notes;
  const std::optional<Rank> placed = place(options, cluster, notes);
  const Rank npus = participating(options, placed, cluster);
  const device::Soc soc = device::resolve_soc(cluster, 0, notes);
  const device::TaskCosts costs = device::read_task_costs(cluster, notes);
  const hccl::HcclConfig config = read_hccl_config(options.hccl_settings, soc.generation, notes);
  const device::Skew skew(options.skew, npus);

  RunReport report;
  report.workload = load_workload(options, soc, npus, notes);
  const auto hbm_check = options.hbm_overflow_is_error ? device::HbmCheck::error : device::HbmCheck::warn;
  const std::string hbm_warning = check_hbm(report.workload.hbm, soc, hbm_check);
  if (!hbm_warning.empty()) notes.push_back(hbm_warning);

  std::vector<Bytes> sizes;
  for (const device::TimedGradient& gradient : report.workload.gradients) {
    sizes.push_back(gradient.elements * size_of(report.workload.gradient_type));
  }
  const hccl::SplitStrategies strategies = options.split_strategies(npus);
  notes.insert(notes.end(), strategies.notes().begin(), strategies.notes().end());
  const std::vector<hccl::Segment> segments = strategies.resolve(hccl::world_group, sizes);
  if (options.split_by_size.has_value() && segments.size() < options.split_by_size->size()) {
    notes.push_back(
        fmt::format("split by size: {} percentages make {} segments, as HCCL stops where a segment ends with the last "
                    "gradient",
                    options.split_by_size->size(), segments.size()));
  }
  if (std::string note = group_note(cluster, soc, npus); !note.empty()) notes.push_back(std::move(note));
  if (options.split_by_size.has_value() && options.split_by_idx.has_value()) {
    notes.emplace_back("--split-by-idx has no effect: a split by size counts before one by index");
  }

  std::vector<Timeline> timelines = open_timelines(options, npus);
  std::vector<OutputFile> step_trace;
  if (!options.step_trace.empty()) step_trace.emplace_back(options.step_trace);

  NumericsFiles numerics_files(options.numerics);

  const Setting setting{cluster,
                        report.workload,
                        soc,
                        costs,
                        {.npus = npus,
                         .segments = segments,
                         .hcom_parallel = options.hcom_parallel,
                         .allreduce = options.allreduce,
                         .config = config,
                         .iterations = options.iterations,
                         .rank = options.rank,
                         .traced = timelines.empty() ? std::vector<Rank>{} : traced_ranks(options, npus),
                         .trace_tasks = !timelines.empty(),
                         .network = network_of(options, npus),
                         .skew = skew}};
  std::optional<FurtherSimulations> further;
  if (options.format == OutputFormat::text || options.advice) further.emplace(setting);
  std::optional<RunExplanation> explanation;
  if (options.explain) explanation.emplace(setting);
  report.result = simulate_training(cluster, report.workload, soc, costs, setting.options);
  if (further.has_value()) further->finish(report);
  if (explanation.has_value()) explanation->finish(report);

  report.model = options.gradients_file.empty() ? options.model : options.gradients_file;
  report.platform = fs::path(platform).filename().string();
  report.rank_table = options.rank_table;
  report.npu = soc.name;
  report.npus = npus;
  report.amp = models::name_of(options.amp);
  report.framework = options.mindspore ? "mindspore" : "tf";
  report.hcom_parallel = options.hcom_parallel;
  report.split = split_name(options);
  report.loss_scale = options.loss_scale;
  report.clip_norm = options.clip_norm;
  report.network = name_of(setting.options.network);
  report.hbm_capacity = soc.hbm_bytes;
  report.iterations = iteration_points(report.result.trace, options.rank, report.workload);
  if (session != nullptr) {
    report.numerics = run_numerics(options,
                                   {.npus = npus,
                                    .soc = soc,
                                    .workload = report.workload,
                                    .segments = segments,
                                    .schedules = report.result.schedules.allreduces,
                                    .iterations = report.iterations},
                                   *session);
    numerics_files.plot(*report.numerics, fmt::format("Loss of {} on {} NPUs", report.workload.title, npus));
  }
  report.link_sources = link_sources(cluster, npus);
  report.unmodelled = unmodelled(options.hccl_settings, modelled_variables);
  report.notes = std::move(notes);
  report.timeline = options.trace;
  for (Timeline& timeline : timelines) {
    write_timeline(report.result.trace, timeline.ranks, [&](std::string_view text) { timeline.file.write(text); });
  }
  for (OutputFile& file : step_trace) file.write(step_trace_csv(report.iterations));
  // Files appear when all has succeeded, printing included.
  print(write_report(report, options.format));
  for (Timeline& timeline : timelines) timeline.file.commit();
  for (OutputFile& file : step_trace) file.commit();
  numerics_files.commit();
  if (report.numerics.has_value()) require_exact(*report.numerics);
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Simulate data-parallel training with gradient splits");
  command->footer(footer);
  add_run_options(*command, *options);
  command->callback([command, options] {
    finish_run_options(*command, *options);
    const std::string platform = find_platform(options->platform);
    std::optional<NumericsSession> session;
    if (options->numerics.enabled) session.emplace();
    static_cast<void>(run_in_child([&] {
      simulate_run(*options, platform, session.has_value() ? &*session : nullptr);
      return std::string();
    }));
    if (session.has_value() && session->interruption.signal() != 0) throw Interrupted(session->interruption.signal());
  });
}

}  // namespace hcclsim::cli
