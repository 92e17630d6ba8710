#pragma once

#include <vector>

#include "cli/draw/timeline.hpp"
#include "hccl/training/step_view.hpp"
#include "sim/trace.hpp"

/// A timeline in the Paje format, which SimGrid writes too: for ViTE, pj_dump (pajeng) and R. Containers are the
/// cluster, its NPUs, their streams and, of a stream that communicates, the planes of its tasks; states are kernels,
/// communication and tasks; links are messages, from a send to its receive, and notifies, from a post to the wait that
/// consumes it. Times are seconds with nine decimals, in order.
namespace hcclsim::cli {

/// Of these ranks. Memory is in proportion to their spans, as the file is in the order of dates.
void write_paje(const hccl::Plan& plan, const sim::Trace& trace, const std::vector<Rank>& ranks, const Sink& sink);

}  // namespace hcclsim::cli
