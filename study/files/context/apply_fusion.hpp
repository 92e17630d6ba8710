#pragma once

#include "study/files/context/apply_context.hpp"

namespace hcclsim::study {

/// Which tensors of the run travel together by the context's comm_fusion and all_reduce_fusion_config. In data_parallel
/// and hybrid_parallel a list cuts the gradients, and in data_parallel a size cuts what the list makes; in
/// semi_auto_parallel and auto_parallel every kind of collective has a size, or ids of parameters if fusion is closed,
/// or gradients a list. `context` must be that of the run's parallel_mode. Throws Error(bad_input) of kind
/// "runtime-error" or "option".
void apply_fusion(const AutoParallelContext& context, const GivenOptions& given, RunSpec& spec);

}  // namespace hcclsim::study
