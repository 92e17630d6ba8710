#pragma once

#include <string>

#include "study/spec/run_spec.hpp"

/// How a step is spread over ranks and over time: pipeline, micro-batches, shared parameters, recomputing.
namespace hcclsim::cli {

class Command;
class OptionOrigins;

/// Options that are read when others are known.
struct ParallelTexts {
  std::string stage_layers{};  ///< a list or "balanced"
  std::string accumulate{};    ///< as given to --accumulate
  std::string comm_reuse{};    ///< as given to --comm-reuse
  bool searched = false;       ///< options fix some choices of a search of plans, which says the others
};

void add_parallel_options(Command& command, study::RunSpec& spec, ParallelTexts& options);
/// Fills in what follows from other options; throws Error(bad_input).
void finish_parallel_options(const OptionOrigins& origins, study::RunSpec& spec, const ParallelTexts& options);
/// Refuses options that would have no effect, once a context has been applied.
void require_effect(const OptionOrigins& origins, const study::RunSpec& spec, const ParallelTexts& options);
/// Fusion of the gradients of data parallelism, once the framework is known.
void finish_fusion(const OptionOrigins& origins, study::RunSpec& spec);

}  // namespace hcclsim::cli
