#pragma once

#include <string>

#include "base/json.hpp"
#include "study/run/result.hpp"

/// What `hcclsim run --numerics` prints beside the timed run: training step by step, and how exact the reductions were.
/// Figures that depend on this computer (wall time, memory) are not part of it, so the same bytes come from any number
/// of workers.
namespace hcclsim::cli {

[[nodiscard]] std::string numerics_text(const study::NumericsResult& report);
[[nodiscard]] Json numerics_json(const study::NumericsResult& report);
/// One row per iteration; the whole output of --format csv.
[[nodiscard]] std::string numerics_csv(const study::NumericsResult& report);

}  // namespace hcclsim::cli
