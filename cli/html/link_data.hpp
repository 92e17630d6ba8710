#pragma once

#include "base/json.hpp"
#include "study/run/result.hpp"

namespace hcclsim::cli {

/// How busy the links were over a step as a report draws it: all links by kind, and the busiest ones of each kind by
/// name.
///
///     interval_s, kinds [{kind, links, capacity_Bps, bytes, busiest[], mean[]} …]
///     links  [{name, kind, capacity_Bps, bytes, load[]} …]
///
/// Loads are shares of the capacity, one per interval from fp_start on, to four digits behind the point. Means are over
/// the links that carried something in the step.
[[nodiscard]] Json link_data(const study::LinkReport& report);

}  // namespace hcclsim::cli
