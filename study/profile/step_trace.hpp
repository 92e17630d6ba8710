#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "study/profile/phases.hpp"

/// msprof's `step_trace_*.csv`: the trace points of every iteration. Needed are the columns Iteration ID, FP Start(us),
/// BP End(us) and Iteration End(us); then pairs of Reduce Start(us) and Reduce Duration(us), which may be N/A in the
/// end of a row. What the file computes from them is computed anew.
namespace hcclsim::study {

struct StepTrace {
  struct Reduce {
    Seconds start = 0;
    Seconds duration = 0;
  };
  struct Iteration {
    Seconds fp_start = 0;
    Seconds bp_end = 0;
    Seconds end = 0;
    std::vector<Reduce> reduces{};
  };
  std::string file;
  std::vector<Iteration> iterations;  ///< at least one; dates since the first FP start

  /// Means over the iterations; all but the first, which warms up, where there are more than one. The allreduces are
  /// those of the iterations that have as many as the last one.
  [[nodiscard]] Phases phases() const;
};

/// Throws Error(bad_input) of kind "profile" with file and line: a column missing, no rows, dates that are no numbers,
/// negative or in the wrong order, an iteration that starts before the one above has ended.
[[nodiscard]] StepTrace parse_step_trace(std::string_view text, const std::string& file);

}  // namespace hcclsim::study
