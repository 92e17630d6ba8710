#include "study/run/experiment/experiment.hpp"

#include <algorithm>
#include <utility>

#include "study/run/experiment/hbm_advice.hpp"
#include "study/run/experiment/host_work.hpp"
#include "study/run/experiment/lower.hpp"
#include "study/run/experiment/segment.hpp"

namespace hcclsim::study {

Experiment::Experiment(const RunSpec& of, sim::Cluster& on, ShardedNetworks* known) : LoadedRun(of, on) {
  ShardedNetworks none;
  segment(lower(*this, known != nullptr ? *known : none), *this);
  complete();
}

void Experiment::complete() {
  hbm_of_stages = hbm_of(training.stages, training.step, config.communicator_bytes());
  for (device::HbmAccount& account : hbm_of_stages) account.activations += training.result_bytes();
  share_communication();
  if (training.step.compression.has_value()) add_compression();
  check_memory();
  add_start_up();
  add_host();
  if (!data_parallel && (training.replica_count() == 1 || spec.step.shape.forward_only)) return;
  note_algorithm(spec.platform.hccl_settings, training.allreduce_request(0, program->gradient_type()),
                 topology_of(training.replicas(), cluster));
}

void Experiment::check_memory() {
  const device::HbmAccount& fullest = *std::ranges::max_element(hbm_of_stages, {}, &device::HbmAccount::peak);
  const HbmSetting setting{.replicas = replicas,
                           .layers = layers,
                           .samples = batch.micro_batch,
                           .micro_batches = batch.micro_batches,
                           .gradients = fullest.gradients,
                           .capacity = soc.hbm_bytes};
  std::string warning = check_hbm(fullest, soc, spec.hbm_check, overfull_stages(hbm_of_stages, soc.hbm_bytes),
                                  hbm_advice(fullest, spec, setting));
  if (!warning.empty()) notes.push_back(std::move(warning));
}

void Experiment::add_start_up() {
  start_up.resize(training.stages.size());
  for (std::size_t stage = 0; stage < training.stages.size(); ++stage) {
    const models::Program& of_stage = *training.stages[stage].program;
    for (const models::Kernel& kernel : of_stage.kernels) {
      if (kernel.launched == models::Launched::before_all) start_up[stage].copies.push_back(kernel);
    }
    if (!spec.parameter_broadcast) continue;
    for (std::uint32_t number = 0; number < of_stage.parameters.size(); ++number) {
      const models::ParameterShare& share = of_stage.parameters[number];
      const bool cut = stage < graphs.size() && graphs[stage].is_cut(number);
      if (share.shards == 1 && !cut) start_up[stage].broadcast_elements += share.elements;
    }
  }
}

void Experiment::add_host() {
  const InputReading unknown{.samples = std::uint64_t{batch.micro_batch} * batch.micro_batches};
  add_host_work(spec.host, input.value_or(unknown), cluster, soc.name, training, notes);
}

/// Of buckets that are the segments of the gradients.
void Experiment::add_compression() {
  const auto has_several_types = [](const hccl::StageProgram& stage) {
    return stage.program->has_several_gradient_types();
  };
  if (std::ranges::any_of(training.stages, has_several_types)) {
    bad_input("unsupported",
              "--compress is for gradients of one type; gradient_fp32_sync False gives several: leave out one of them");
  }
  const hccl::CompressionSettings& settings = training.step.compression->settings;
  const std::vector<std::string> unused = notes_on(settings);
  notes.insert(notes.end(), unused.begin(), unused.end());
  hccl::TrainingStep of_stage = training;
  const Rank own = training.simulation.rank % training.step.stage_ranks();
  for (std::uint32_t stage = 0; stage < training.stages.size(); ++stage) {
    of_stage.simulation.rank = stage * training.step.stage_ranks() + own;
    hbm_of_stages[stage].compression =
        compression_memory(settings, *of_stage.program(), of_stage.segments(), of_stage.replica_count()).total();
  }
}

}  // namespace hcclsim::study
