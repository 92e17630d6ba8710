#include <fmt/format.h>

#include "study/run/run.hpp"

/// How long a training step of ResNet50 takes on eight 910A, with the gradients split 80 : 20 beside the backward pass.
int main() {
  hcclsim::study::RunSpec spec;
  spec.platform.file = "atlas800-9000";
  spec.step.hcom_parallel = true;
  spec.split_by_size = {80, 20};
  const hcclsim::study::RunFigures run = hcclsim::study::simulate(spec);
  fmt::print("step {:.3f} ms, {:.0f} images/s\n", run.step_time * 1e3, run.images_per_second);
  for (const auto& allreduce : run.view.segments) {
    fmt::print("allreduce of {} tensors by {}: {:.3f} to {:.3f} ms\n", allreduce.segment.tensors(), allreduce.algorithm,
               allreduce.start * 1e3, allreduce.end * 1e3);
  }
}
