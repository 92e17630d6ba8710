#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/workload.hpp"
#include "sim/trace.hpp"

/// The trace points of iterations in the words of msprof and of the vendor's split guide: fp_start, bp_end,
/// allreduce1_start, allreduce1_end, …, iteration_end; as a CSV file and as a bar of text.
namespace hcclsim::cli {

/// One iteration of one rank; dates in the trace's clock.
struct IterationPoints {
  struct AllReduce {
    Seconds start = 0;
    Seconds end = 0;
  };
  Seconds fp_start = 0;
  Seconds bp_start = 0;                      ///< the first kernel of the backward pass starts; bp_end if there is none
  Seconds bp_end = 0;                        ///< the last kernel of the workload ends
  std::vector<AllReduce> allreduces;         ///< in the order of segments
  std::optional<AllReduce> overflow_flag{};  ///< of dynamic loss scaling
  Seconds iteration_end = 0;                 ///< updates and allreduces have ended
};

/// The iterations of a traced rank, first to last.
[[nodiscard]] std::vector<IterationPoints> iteration_points(const sim::Trace& trace, Rank rank,
                                                            const device::Workload& workload);

/// One row per iteration in the columns of msprof's step_trace file, in microseconds; as many pairs of Reduce columns
/// as there are allreduces, that of the overflow flag last. Iteration Time is Iteration End − FP Start.
[[nodiscard]] std::string step_trace_csv(const std::vector<IterationPoints>& iterations);

/// "|FP....|BP........|AR1####|AR2#|U|": who is busy in an iteration, in proportion to time except where a span is too
/// short to be seen. If allreduces begin before bp_end they get a second line. With an overflow flag: checks "C" after
/// the last allreduce, the flag's allreduce "F", then the updates; norms of clipping count as updates.
[[nodiscard]] std::vector<std::string> iteration_bar(const IterationPoints& iteration);

}  // namespace hcclsim::cli
