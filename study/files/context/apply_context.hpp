#pragma once

#include "study/files/context/auto_parallel_context.hpp"
#include "study/spec/run_spec.hpp"

/// What a context does to a run.
namespace hcclsim::study {

/// Options of the command line that a context says too: where both are given they must be equal.
struct GivenOptions {
  bool stages = false;
  bool schedule = false;
  bool chunks = false;
  bool npus = false;
  bool rank = false;
  bool optimizer = false;
  bool accumulation_shard = false;
  bool fusion = false;
  bool fusion_index = false;
  bool framework = false;
  bool comm_dtype = false;
  bool split = false;
  bool split_by_idx = false;
  bool split_by_size = false;
  bool hcom_parallel = false;

  /// The option that sets a split of HCCL's; null: none does.
  [[nodiscard]] const char* split_option() const {
    return split_by_idx ? "--split-by-idx" : split_by_size ? "--split-by-size" : split ? "--split" : nullptr;
  }
};

/// The modes of options that stand alone, without a file that says all, unless they name them: auto_parallel with
/// sharding_propagation for regions of functional sharding; else parallel_mode semi_auto_parallel if they or the run
/// have stages or shared parameters, or data_parallel.
void set_implied_mode(AutoParallelContext& context, const RunSpec& spec);

/// Checks the options of a context against each other and against the run, and changes the run, its notes included.
/// What needs the number of devices or the network is left to compile_checks.hpp. Throws Error(bad_input) of kind
/// "runtime-error", "value-error", "option" or "unsupported".
void apply_context(const AutoParallelContext& context, const GivenOptions& given, RunSpec& spec);

}  // namespace hcclsim::study
