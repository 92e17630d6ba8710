#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "study/files/profile/phases.hpp"

/// msprof's `step_trace_*.csv`: the trace points of every iteration. Needed are the columns Iteration ID, FP Start(us),
/// BP End(us) and Iteration End(us); then pairs of Reduce Start(us) and Reduce Duration(us), which may be N/A or left
/// out in the end of a row. Device_id and Model ID are used where they are there. What the file computes from the
/// trace points is computed anew.
namespace hcclsim::study {

struct StepTrace {
  struct Reduce {
    Seconds start = 0;
    Seconds duration = 0;
  };
  struct Iteration {
    std::string id;  ///< Iteration ID
    Seconds fp_start = 0;
    Seconds bp_end = 0;
    Seconds end = 0;
    std::optional<Seconds> step{};  ///< from the end of the iteration before; none if that is not known
    std::vector<Reduce> reduces{};
  };
  std::string file;
  std::string device;                 ///< the only one that is kept; empty if the file does not say
  std::int64_t zero_us = 0;           ///< the file's earliest date
  std::vector<Iteration> iterations;  ///< at least one; dates since the file's earliest date
  std::vector<std::string> notes{};   ///< what was left out

  /// The iterations that means are made of: all but the first, which warms up, where there are more than one; of these
  /// those with as many allreduces as most have, so that a last one which was cut off does not count.
  [[nodiscard]] std::vector<const Iteration*> counted() const;
  /// Means over the counted iterations.
  [[nodiscard]] Phases phases() const;
};

/// Keeps the iterations of the first device, the one with the lowest number, and of the model that has most of them.
/// Leaves out iterations without one of the three dates. Throws Error(bad_input) of kind "profile" with file and line:
/// a column missing, no whole iteration, dates that are no numbers, negative or in the wrong order, iterations that
/// overlap. The order of the rows says nothing.
[[nodiscard]] StepTrace parse_step_trace(std::string_view text, const std::string& file);

}  // namespace hcclsim::study
