#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "sim/trace.hpp"

namespace hcclsim::cli {

/// Space-time diagram of the tasks inside collectives, as SVG: a lane for every rank with a row for each of its queues,
/// time to the right. Bars are what a queue does, lines lead from where a transfer's bytes leave to where they arrive;
/// every bar says in words what it is. `ranks`: ascending, those that are shown; transfers with others have no line.
/// Throws Error(bad_input, "option") if there is too much to see.
[[nodiscard]] std::string space_time_diagram(const std::string& title, const std::vector<Rank>& ranks,
                                             const sim::Trace& trace);

}  // namespace hcclsim::cli
