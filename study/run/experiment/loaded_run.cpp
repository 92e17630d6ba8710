#include "study/run/experiment/loaded_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "hccl/comm/groups.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/platform/catalog.hpp"
#include "study/files/context/compile_checks.hpp"
#include "study/run/experiment/comm_reuse.hpp"
#include "study/run/experiment/stages.hpp"

namespace hcclsim::study {
namespace {

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

/// The number of NPUs that take part, all of one kind: those of the rank table or list, or as the spec says.
Rank npus_of_run(const RunSpec& spec, const LoadedPlatform& platform) {
  const sim::Cluster& cluster = platform.cluster;
  const Rank npus = platform.placed.value_or(spec.npus.value_or(cluster.size()));
  if (const std::vector<Rank>& list = spec.platform.rank_table.npus_list;
      !list.empty() && spec.npus.value_or(npus) != npus) {
    bad_input("option", "--npus-list {} names {} NPUs, but --npus (or device_num) says {}; they must agree",
              hccl::rank_ranges(list), npus, *spec.npus);
  }
  if (npus > cluster.size()) {
    bad_input("option", "--npus {}: {} has {} NPUs; accepted: 1 to {}; platform generate writes larger ones", npus,
              cluster.path(), cluster.size(), cluster.size());
  }
  if (spec.simulation.rank >= npus && spec.is_graph_parallel()) {
    bad_input("runtime-error", "global_rank {} (--rank): device_num is {}; accepted: 0 to {}", spec.simulation.rank,
              npus, npus - 1);
  }
  if (spec.simulation.rank >= npus) {
    bad_input("option", "--rank {}: the run has {} NPUs; accepted: 0 to {}", spec.simulation.rank, npus, npus - 1);
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
std::vector<std::string_view> variables_of(const RunSpec& spec) {
  std::vector<std::string_view> variables{"HCCL_ALGO", "HCCL_BUFFSIZE", "HCCL_DETERMINISTIC", "HCCL_EXEC_TIMEOUT",
                                          "HCCL_INTER_HCCS_DISABLE"};
  if (spec.step.launch != hccl::LaunchMode::op) return variables;
  variables.emplace_back("HCCL_OP_EXPANSION_MODE");
  variables.insert(variables.end(), queue_pairs.begin(), queue_pairs.end());
  return variables;
}

/// Of a step; where sizes do not go together the number that is asked for, so that the devices are judged first.
std::uint32_t micro_batches_of(const RunSpec& spec, Rank npus) {
  const ParallelSpec& parallel = spec.parallel;
  if (npus % (spec.step.shape.stages * parallel.operators.sharing()) != 0) return parallel.micro_batches.value_or(1);
  return parallel.batch_sizes(spec.model.batch, spec.replicas(npus)).micro_batches;
}

/// Notes what sharing of the HBM means for the run. Throws Error(bad_input, "option") where it cannot be simulated.
void note_shared_hbm(const RunSpec& spec, const device::Soc& soc, std::vector<std::string>& notes) {
  if (spec.simulation.network == sim::NetworkKind::simgrid) {
    bad_input("option",
              "--hbm-contention on does not go with --network simgrid, whose transfers load links alone; give fluid");
  }
  if (!spec.faults.empty()) {
    bad_input(
        "option",
        "--hbm-contention on does not go with --fault: when kernels that share an HBM stop, slow down or go on is "
        "not simulated; leave out one of them");
  }
  notes.push_back(
      fmt::format("HBM contention: kernels, copies and transfers of an NPU share {:g} GB/s of HBM, kernels and AI-core "
                  "reductions take the AI cores one after the other; the costs of single collectives, where they are "
                  "given, are those on NPUs that do nothing else",
                  soc.hbm_bandwidth / giga));
  if (!spec.gradients_file.empty()) {
    notes.push_back(
        fmt::format("HBM contention: {} does not tell what its kernels read and write, so transfers do not "
                    "slow them down; updates follow the cost model",
                    spec.gradients_file));
  } else if (!spec.profiles.empty()) {
    notes.emplace_back(
        "HBM contention: of measured kernels, bytes are those of the cost model, where it has the kernel");
  }
}

}  // namespace

device::ProgramOptions options_of_program(const RunSpec& spec, Rank npus) {
  // In semi_auto_parallel and auto_parallel what follows a mirror divides, and a replica alone has no mirrors (R1.16):
  // then its gradients have the types of their parameters.
  const bool divides = !spec.is_graph_parallel() || spec.devices(npus) > 1;
  std::optional<models::GradientSync> sync = spec.gradient_sync;
  if (sync.has_value() && !divides) sync = models::GradientSync{.as_written = sync->as_written};
  return {
      .precision = spec.precision,
      .optimizer = spec.optimizer,
      .gradient_type = spec.communication_type,
      .gradient_sync = sync,
      .fp32_sums = spec.fp32_sums,
      .checks = spec.gradient_checks(),
      .fused_attention = spec.fused_attention,
      .forward_only = spec.step.shape.forward_only,
      .gradients_mean = divides && spec.gradients_mean_kernels && !spec.step.compression.has_value(),  // a hook divides
      .mean_again = divides && spec.mean_again};
}

LoadedRun::LoadedRun(RunSpec of, sim::Cluster& on)
    : LoadedPlatform(of.platform.rank_table, of.platform.hccl_settings, variables_of(of), on),
      spec(std::move(of)),
      training{.stages = {}, .step = spec.step, .simulation = spec.simulation},
      data_parallel(spec.is_data_parallel()) {
  npus = npus_of_run(spec, *this);
  notes.insert(notes.end(), soc_notes.begin(), soc_notes.end());
  notes.insert(notes.end(), spec.notes.begin(), spec.notes.end());
  check_recomputed_communication(spec.parallel, spec.step.shape, notes);
  if (spec.step.launch == hccl::LaunchMode::op && config.op_expansion == hccl::OpExpansion::aiv) {
    notes.emplace_back(
        "HCCL_OP_EXPANSION_MODE AIV is documented for inference: a training step takes the default mode");
  }
  training.step.config = config;
  training.simulation.skew = device::Skew(spec.skew, npus);
  training.simulation.faults = sim::FaultPlan::of(cluster, spec.faults, npus);
  check_compilation(spec, npus, micro_batches_of(spec, npus));
  spec.require_ranks(npus);
  replicas = spec.replicas(npus);
  batch = spec.parallel.batch_sizes(spec.model.batch, replicas);
  training.step.npus = npus;
  training.step.shape.micro_batches = batch.micro_batches;
  if (spec.simulation.hbm_contention) note_shared_hbm(spec, soc, notes);
  training.step.comm_reuse = comm_reuse_on(*this, spec);
  if (spec.parallel.optimizer.accumulation_shard && spec.parallel.optimizer.kind < hccl::OptimizerParallelKind::on) {
    notes.emplace_back("gradient_accumulation_shard has no effect: no parameters are shared (--optimizer-parallel)");
  }
  if (spec.step.pad_segments && spec.step.compression.has_value()) {
    bad_input("option",
              "--pad-segments is for allreduces, in whose place --compress puts a hook; leave out one of them");
  }
  if (spec.step.shape.forward_only && spec.step.compression.has_value()) {
    bad_input("option", "--compress is of gradients, of which --forward-only has none; leave out one of them");
  }
}

device::ProgramOptions LoadedRun::program_options() const {
  device::ProgramOptions how = options_of_program(spec, npus);
  how.accumulate = batch.micro_batches > 1;
  return how;
}

RunSpec LoadedRun::spec_on_placed() const {
  RunSpec other = spec;
  other.platform.rank_table = {};
  other.npus = npus;
  return other;
}

std::uint32_t LoadedRun::samples_of_micro_batch() const {
  return batch.micro_batch * (spec.parallel.operators.cuts() ? replicas : 1);
}

models::ModelOptions LoadedRun::sizes_of_micro_batch() const {
  models::ModelOptions sizes = spec.model;
  sizes.batch = samples_of_micro_batch();
  return sizes;
}

}  // namespace hcclsim::study
