#pragma once

#include <string>

#include "base/json.hpp"
#include "study/platform/assumptions.hpp"

/// The range of a simulated time, as reports have it. docs/formats.md describes the JSON.
namespace hcclsim::cli {

[[nodiscard]] Json uncertainty_json(const study::Uncertainty& uncertainty);
/// "kernel times -10..+10 % (15.570..18.860 ms), HCCS …": the one or two assumptions that matter most; empty: none
/// was tried, or none changes what is printed.
[[nodiscard]] std::string largest_effects(const study::Uncertainty& uncertainty);
/// A line per assumption: the time with it alone at its ends.
[[nodiscard]] std::string effects_table(const study::Uncertainty& uncertainty);

}  // namespace hcclsim::cli
