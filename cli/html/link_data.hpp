#pragma once

#include "base/json.hpp"
#include "study/platform/link_report.hpp"

namespace hcclsim::cli {

/// How busy the links were over a step as a report draws it: all links by kind, and the busiest ones by name.
///
///     interval_s, links_used
///     kinds [{kind, links, bytes, busiest_link, capacity_Bps, utilisation, busiest[], mean[]} …]
///     links [{load[], and what `hcclsim run --links` prints of a link} …]
///
/// Loads are shares of the capacity, one per interval from fp_start on, to four digits behind the point. Means are over
/// the links that carried something in the step; `busiest` is the load of whichever link is the busiest then.
[[nodiscard]] Json link_data(const study::LinkReport& report);

}  // namespace hcclsim::cli
