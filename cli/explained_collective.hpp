#pragma once

#include <string>

#include "base/units.hpp"
#include "cli/print/explanation.hpp"
#include "hccl/collective/selection/explain.hpp"

/// An explanation of the library as `--explain` prints it.
namespace hcclsim::cli {

/// Beyond so many NPUs a ring over all of them is more than one wants to wait for; formulas are given alone then.
inline constexpr Rank most_explained_by_simulation = 128;

/// Without simulated times; its algorithms are the alternatives that have a schedule, in their order.
[[nodiscard]] ExplainedCollective explained(const hccl::Explanation& explanation, std::string title, Bytes payload);

}  // namespace hcclsim::cli
