#pragma once

#include "study/context/auto_parallel_context.hpp"
#include "study/run/spec.hpp"

/// What a context does to a run.
namespace hcclsim::study {

/// Options of the command line that a context says too: where both are given they must be equal.
struct GivenOptions {
  bool file = false;  ///< the context comes from one: without a parallel_mode it is stand_alone
  bool stages = false;
  bool schedule = false;
  bool npus = false;
  bool rank = false;
  bool optimizer = false;
  bool fusion_index = false;
  bool comm_dtype = false;
  bool split = false;
  bool hcom_parallel = false;
  bool gradients_mean = false;
};

/// Checks the options of a context against each other and against the run, and changes the run, its notes included.
/// Throws Error(bad_input) of kind "runtime-error", "value-error", "option" or "unsupported".
void apply_context(const AutoParallelContext& context, const GivenOptions& given, RunSpec& spec);

}  // namespace hcclsim::study
