#pragma once

#include "base/child_process.hpp"
#include "base/units.hpp"
#include "study/run/compression_result.hpp"
#include "study/run/experiment/experiment.hpp"
#include "study/run/split_search/simulations.hpp"

/// What compression does to a run: sizes and memory, and by further simulations times.
namespace hcclsim::study {

/// What compression does to a run, as far as no further simulation is needed.
[[nodiscard]] CompressionResult compression_result(const Experiment& experiment);

/// Further simulations of a run with compression.
class CompressionComparison {
 public:
  /// Starts them. Must be called before this process simulates anything. The experiment must outlive the object.
  explicit CompressionComparison(Experiment& experiment);

  /// Waits for the results.
  [[nodiscard]] CompressionResult finish();

 private:
  CompressionResult result_;
  ChildOf<Seconds> plain_;
  ChildOf<Seconds> compressed_;
};

/// The step as it is when its compression hook, if it has one, has started.
[[nodiscard]] hccl::TrainingStep with_started_hook(hccl::TrainingStep training);

/// Starts the simulation of the experiment's step, all of it compressed or without compression.
[[nodiscard]] ChildOf<Seconds> start_step(Experiment& experiment, bool compressed,
                                          const BandwidthFactor& bandwidth = {});

}  // namespace hcclsim::study
