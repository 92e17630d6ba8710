#include "study/run/compression.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace hcclsim::study {

hccl::TrainingStep with_started_hook(hccl::TrainingStep training) {
  if (training.step.compression.has_value()) {
    training.step.compression->steps_done = std::numeric_limits<std::uint32_t>::max();
  }
  return training;
}

ChildOf<Seconds> start_step(Experiment& experiment, bool compressed, const BandwidthFactor& bandwidth) {
  hccl::TrainingStep training = with_started_hook(experiment.training);
  if (!compressed) training.step.compression.reset();
  return ChildOf<Seconds>([&experiment, bandwidth, training = std::move(training)] {
    if (bandwidth.factor != 1) experiment.cluster.adjust(adjustments_of(experiment.cluster, bandwidth));
    return experiment.simulate(training).step_times[training.simulation.rank];
  });
}

double CompressionResult::rate() const {
  return elements_after > 0 ? static_cast<double>(elements_before) / static_cast<double>(elements_after) : 0;
}

CompressionResult compression_result(const Experiment& experiment) {
  const hccl::CompressionPlan& compression = *experiment.training.step.compression;
  CompressionResult result;
  result.settings = compression.settings;
  result.text = to_string(compression.settings);
  const hccl::CompressedElements sent =
      compressed_elements(compression.settings, *experiment.program, experiment.training.segments());
  result.elements_before = sent.before;
  result.elements_after = sent.after;
  result.bytes_before = sent.bytes_before;
  result.bytes_after = sent.bytes_after;
  result.memory = compression_memory(compression.settings, *experiment.program, experiment.training.segments(),
                                     experiment.training.replica_count());
  const std::uint64_t start = compression.settings.start;
  const std::uint64_t plain = start - std::min<std::uint64_t>(start, compression.steps_done);
  result.plain_iterations =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(plain, experiment.training.simulation.iterations));
  result.compressed_iterations = experiment.training.simulation.iterations - result.plain_iterations;
  result.compressed_before = compression.steps_done - std::min<std::uint64_t>(start, compression.steps_done);
  return result;
}

CompressionComparison::CompressionComparison(Experiment& experiment)
    : result_(compression_result(experiment)),
      plain_(start_step(experiment, false)),
      compressed_(start_step(experiment, true)) {}

CompressionResult CompressionComparison::finish() {
  result_.compared = true;
  result_.plain_step = plain_.result();
  result_.compressed_step = compressed_.result();
  return std::move(result_);
}

}  // namespace hcclsim::study
