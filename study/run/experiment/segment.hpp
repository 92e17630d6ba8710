#pragma once

#include "study/run/experiment/loaded_run.hpp"
#include "study/run/experiment/stages.hpp"

namespace hcclsim::study {

/// Decides which gradients and weights of a run travel together, and makes its stages: as HCCL splits gradients or
/// MindSpore fuses them in data parallelism, else by MindSpore's fusion of communication operators. Adds to the run
/// what is known of it, and notes. Throws Error(bad_input).
void segment(LoweredStages lowered, LoadedRun& run);

}  // namespace hcclsim::study
