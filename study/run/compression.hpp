#pragma once

#include "base/child_process.hpp"
#include "base/units.hpp"
#include "study/experiment.hpp"
#include "study/run/compression_result.hpp"

/// What compression does to a run, by further simulations.
namespace hcclsim::study {

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

/// The step of the experiment's rank without compression, or with all steps compressed: in a child.
[[nodiscard]] ChildOf<Seconds> plain_step(Experiment& experiment);
[[nodiscard]] ChildOf<Seconds> compressed_step(Experiment& experiment);

}  // namespace hcclsim::study
