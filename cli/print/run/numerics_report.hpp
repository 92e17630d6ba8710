#pragma once

#include <cstddef>
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

/// The text in the pieces in which it becomes known: before the first step, after each one (`done` of `total`; empty if
/// its row is not shown), and at the end.
[[nodiscard]] std::string numerics_begin_text(const study::NumericsResult& report);
[[nodiscard]] std::string step_text(const study::NumericsIteration& step, std::size_t done, std::size_t total);
[[nodiscard]] std::string numerics_end_text(const study::NumericsResult& report);
/// Of the rows: their titles, and that of a step of a training that is described by `report`.
[[nodiscard]] std::string csv_titles(const study::NumericsResult& report);
[[nodiscard]] std::string csv_row(const study::NumericsResult& report, const study::NumericsIteration& step);

}  // namespace hcclsim::cli
