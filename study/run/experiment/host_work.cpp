#include "study/run/experiment/host_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "sim/cpu_hosts.hpp"
#include "sim/platform/catalog.hpp"

namespace hcclsim::study {
namespace {

/// Of every rank's data workers.
std::vector<double> shared_by_servers(double images_per_second, const sim::Cluster& cluster, Rank npus) {
  std::vector<Rank> ranks(cluster.servers(), 0);
  for (Rank rank = 0; rank < npus; ++rank) ++ranks[cluster.npu(rank).server];
  std::vector<double> rates;
  for (Rank rank = 0; rank < npus; ++rank) rates.push_back(images_per_second / ranks[cluster.npu(rank).server]);
  return rates;
}

/// Stages in between read for themselves, but nothing waits for it.
std::vector<hccl::InputPipeline::Batch> batches_of(const InputReading& reading, std::uint32_t stages) {
  std::vector<hccl::InputPipeline::Batch> batches(stages);
  batches.front() = batches.back() = {.samples = reading.samples};
  batches.front().bytes += reading.sample_bytes;
  batches.back().bytes += reading.label_bytes;
  return batches;
}

void note_copies(sim::Cluster& cluster, const std::string& soc, Rank npus, std::vector<std::string>& notes) {
  const std::uint32_t cpus = sim::CpuHosts(cluster).size();
  const auto reached = [&](Rank rank) { return cluster.npu(rank).server < cpus; };
  for (Rank rank = 0; rank < npus; ++rank) {
    if (reached(rank)) continue;
    notes.push_back(fmt::format(
        "the platform has no CPU in server {}: batches are copied to the device at {:g} GB/s, the speed of the link to "
        "the CPU in a server of {}, with nothing else on the way",
        cluster.npu(rank).server, sim::host_bandwidth(soc) / giga, soc));
    return;
  }
}

}  // namespace

void add_host_work(const HostSpec& spec, const InputReading& reading, sim::Cluster& cluster, const std::string& soc,
                   hccl::TrainingStep& training, std::vector<std::string>& notes) {
  hccl::StepSpec& step = training.step;
  if (step.host_launch.has_value() && spec.launch_is_assumed) {
    notes.push_back(
        fmt::format("the host takes {:g} us to issue a kernel: a figure of the vendor's modelling tool, which nobody "
                    "has confirmed; "
                    "--host-launch-us sets another one",
                    *step.host_launch / microsecond));
  }
  if (spec.images_per_second.has_value()) {
    const hccl::InputPipeline pipeline{spec.prefetch, batches_of(reading, step.shape.stages)};
    step.input = {pipeline, shared_by_servers(*spec.images_per_second, cluster, step.npus)};
    if (reading.bytes > 0) {
      note_copies(cluster, soc, step.npus, notes);
    } else {
      notes.emplace_back("the network is not known: copies of its batches to the device take no time");
    }
  }
  if (!step.checkpoints.has_value() || step.checkpoints->every <= training.simulation.iterations) return;
  notes.push_back(fmt::format("no checkpoint is written within {} iterations: the first is that behind step {}",
                              training.simulation.iterations, step.checkpoints->every));
  step.checkpoints.reset();
}

HostFigures host_figures(const hccl::TrainingStep& training, double images_per_second, const hccl::TimedStep& step,
                         const hccl::StepView& view) {
  HostFigures figures;
  const Rank rank = training.simulation.rank;
  const hccl::Role& role = step.plan.role(rank);
  const auto last = static_cast<std::int32_t>(view.iterations.size()) - 1;
  HostFigures::Issuing issuing{.launch = training.step.host_launch.value_or(0)};
  HostFigures::Input input{.images_per_second = images_per_second};
  for (const sim::Span& span : step.trace.spans()) {
    if (span.rank != rank || span.kind != sim::SpanKind::host || span.id.iteration != last) continue;
    const Seconds time = span.end - span.start;
    if (span.stream >= role.streams.size()) {
      ++issuing.calls;
      issuing.busy += time;
      continue;
    }
    const hccl::PlanTask& task = role.tasks[span.id.task];
    const auto& work = task.work;
    if (task.purpose.phase != hccl::StepPhase::input) continue;
    if (const auto* batch = std::get_if<hccl::InputWork>(&work)) {
      input.samples = batch->samples;
      input.batch = time;
    } else if (const auto* copy = std::get_if<hccl::HostCopy>(&work)) {
      input.copied = copy->bytes;
      input.copy = time;
    }
  }
  if (issuing.launch > 0) figures.issuing = issuing;
  if (training.step.input.has_value() && input.samples > 0) {
    input.prefetch = training.step.input->pipeline.prefetch;
    input.ranks = static_cast<Rank>(std::lround(images_per_second / training.step.input->samples_per_second[rank]));
    figures.input = input;
  }
  for (std::uint32_t iteration = 0; iteration < view.iterations.size(); ++iteration) {
    const std::optional<sim::Interval>& written = view.iterations[iteration].checkpoint;
    if (!written.has_value()) continue;
    if (!figures.checkpoints.has_value()) figures.checkpoints = HostFigures::Checkpoints{};
    figures.checkpoints->bytes = hccl::CheckpointWrites::bytes_of(*role.program);
    figures.checkpoints->time = written->length();
    figures.checkpoints->behind.push_back(training.step.checkpoints->steps_done + iteration + 1);
  }
  return figures;
}

}  // namespace hcclsim::study
