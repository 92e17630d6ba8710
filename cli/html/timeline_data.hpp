#pragma once

#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"
#include "cli/print/run/run_report.hpp"

/// The spans of a training step as a report draws them: of each rank a lane per stream and, for the tasks inside
/// allreduces, a lane per plane. Dates are whole nanoseconds since fp_start of the last iteration on the printed rank.
///
///     points  [[name, date] …]                     trace points of the printed rank
///     names   [text …]                             of spans
///     lanes   [{rank, name, tasks, start[], duration[], kind[], label[]} …]
///
/// kind: forward, backward, check, update, allreduce, flag; of tasks copy, reduce, local_reduce, post, wait; as numbers
/// into `kinds`. label: a number into `names`, of tasks the peer's rank or −1. Lanes of allreduces and tasks also have
/// bytes[].
namespace hcclsim::cli {

/// Of these traced ranks, in their order. Tasks are left out rank by rank where there are too many for a page;
/// `tasks_left_out` tells of how many ranks.
[[nodiscard]] Json timeline_data(const RunReport& report, const std::vector<Rank>& ranks);

}  // namespace hcclsim::cli
