#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/training/step_view.hpp"

/// The trace points of iterations in the words of msprof and of the vendor's split guide: fp_start, bp_end,
/// allreduce1_start, allreduce1_end, …, iteration_end; as a CSV file and as a bar of text.
namespace hcclsim::cli {

/// One row per iteration in the columns of msprof's step_trace file, in microseconds; as many pairs of Reduce columns
/// as there are allreduces, that of the overflow flag last. Iteration Time is Iteration End − FP Start.
[[nodiscard]] std::string step_trace_csv(const std::vector<hccl::IterationPoints>& iterations);

/// "|FP....|BP........|AR1####|AR2#|U|": who is busy in an iteration, in proportion to time except where a span is too
/// short to be seen. If allreduces begin before bp_end they get a second line. With an overflow flag: checks "C" after
/// the last allreduce, the flag's allreduce "F", then the updates; norms of clipping count as updates.
[[nodiscard]] std::vector<std::string> iteration_bar(const hccl::IterationPoints& iteration);

}  // namespace hcclsim::cli
