#pragma once

#include <nlohmann/json.hpp>

#include "cli/run_report.hpp"

namespace hcclsim::cli {

/// What the links carried in the allreduces of a step as a report draws it: all links by kind, and the busiest ones of
/// each kind by name.
///
///     kinds  [{kind, links, capacity_Bps, bytes, segments [{busiest, mean}…]} …]
///     links  [{name, kind, capacity_Bps, bytes, segments [share …]} …]
///
/// A share is the time for which what the link carries needs all of it, over the time of the allreduce. Means are over
/// the links that carried something in the step.
[[nodiscard]] nlohmann::ordered_json link_data(const RunReport& report);

}  // namespace hcclsim::cli
