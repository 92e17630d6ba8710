#include "cli/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.hpp"
#include "hccl/comm/groups.hpp"
#include "models/profile.hpp"
#include "models/zoo/zoo.hpp"
#include "sim/platform/catalog.hpp"

namespace hcclsim::cli {
namespace {

sim::NetworkKind network_of(const RunOptions& options, Rank npus) {
  if (options.network != "auto") {
    return options.network == "simgrid" ? sim::NetworkKind::simgrid : sim::NetworkKind::fluid;
  }
  // A mesh that is asked for moves something between all pairs at once, also between servers.
  const bool mesh =
      options.allreduce == hccl::Algorithm::mesh_one_shot || options.allreduce == hccl::Algorithm::mesh_two_shot;
  return sim::automatic_network(npus, mesh ? std::uint64_t{npus} * (npus - 1) : npus);
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

/// The number of NPUs that take part, all of one kind: those of the rank table, or as the options say.
Rank npus_of_run(const RunOptions& options, const study::LoadedPlatform& platform) {
  const sim::Cluster& cluster = platform.cluster;
  const Rank npus = platform.placed.value_or(options.npus.value_or(cluster.size()));
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
              platform.placed.has_value() ? "" : fmt::format(": --npus {} takes those before", rank));
  }
  return npus;
}

/// Variables of HCCL that change what a run does: what it costs, or the memory that it takes. All of its reductions are
/// deterministic, as HCCL_DETERMINISTIC asks.
constexpr std::array<std::string_view, 5> variables_of_a_run{"HCCL_ALGO", "HCCL_BUFFSIZE", "HCCL_DETERMINISTIC",
                                                             "HCCL_EXEC_TIMEOUT", "HCCL_INTER_HCCS_DISABLE"};

/// What HCCL has against the NPUs that take part; empty if nothing.
std::string group_note(const sim::Cluster& cluster, const device::Soc& soc, Rank npus) {
  const hccl::Communicator world = hccl::world_communicator(npus);
  const auto refused = hccl::refused_server(world.ranks, cluster, soc.generation);
  if (!refused.has_value()) return {};
  return fmt::format("HCCL does not accept the {} NPUs of server {} on {}: {}; simulated all the same", refused->npus,
                     refused->server, soc.name, hccl::group_rule_910a);
}

}  // namespace

Experiment::Experiment(const RunOptions& options, sim::Cluster& on)
    : LoadedPlatform(options.rank_table, options.hccl_settings, variables_of_a_run, on),
      npus(npus_of_run(options, *this)) {
  notes.insert(notes.end(), soc_notes.begin(), soc_notes.end());
  training.config = config;
  training.skew = device::Skew(options.skew, npus);
  program = std::make_shared<models::Program>(load_program(options));
  hbm = device::hbm_account(*program, npus > 1 ? config.communicator_bytes() : 0);
  const auto hbm_check = options.hbm_overflow_is_error ? device::HbmCheck::error : device::HbmCheck::warn;
  if (std::string warning = check_hbm(hbm, soc, hbm_check); !warning.empty()) {
    notes.push_back(std::move(warning));
  }
  gradient_sizes = program->gradient_sizes();
  const hccl::SplitStrategies strategies = options.split_strategies(npus);
  training.npus = npus;
  training.segments = strategies.resolve(hccl::world_group, gradient_sizes);
  training.hcom_parallel = options.hcom_parallel;
  training.allreduce = options.allreduce;
  if (!options.levels.empty()) training.levels = hccl::parse_levels(options.levels);
  training.launch = options.launch;
  training.iterations = options.iterations;
  training.rank = options.rank;
  training.network = network_of(options, npus);
  note_algorithm(options.hccl_settings, training.allreduce_request(0, program->gradient_type()),
                 topology_of(hccl::world_communicator(npus), cluster));
  add_split_notes(options, strategies);
}

models::Program Experiment::load_program(const RunOptions& options) {
  const device::ProgramOptions how{.amp = options.amp,
                                   .optimizer = options.optimizer,
                                   .gradient_type = options.communication_type,
                                   .checks = options.gradient_checks()};
  if (!options.gradients_file.empty()) {
    model = options.gradients_file;
    models::Program measured = make_program(models::read_gradient_profile(options.gradients_file), soc, how, notes);
    measured.batch = options.batch;
    return measured;
  }
  model = options.model;
  const models::Graph graph =
      models::make_model({options.model, options.batch, options.input, options.classes, options.fc_bias});
  if (options.profiles.empty()) return make_program(graph, soc, how, notes);
  const study::Profiles profiles = study::read_profiles(options.profiles);
  if (const std::string file = profiles.gradients_file(); !file.empty()) model = file;
  return study::imported_program(profiles, graph, soc, how, profile.emplace(), notes);
}

void Experiment::add_split_notes(const RunOptions& options, const hccl::SplitStrategies& strategies) {
  notes.insert(notes.end(), strategies.notes().begin(), strategies.notes().end());
  if (options.split_by_size.has_value() && training.segments.size() < options.split_by_size->size()) {
    notes.push_back(
        fmt::format("split by size: {} percentages make {} segments, as HCCL stops where a segment ends with the last "
                    "gradient",
                    options.split_by_size->size(), training.segments.size()));
  }
  if (std::string note = group_note(cluster, soc, npus); !note.empty()) notes.push_back(std::move(note));
  if (options.split_by_size.has_value() && options.split_by_idx.has_value()) {
    notes.emplace_back("--split-by-idx has no effect: a split by size counts before one by index");
  }
}

}  // namespace hcclsim::cli
