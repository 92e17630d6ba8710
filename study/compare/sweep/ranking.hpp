#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/compare/sweep/store.hpp"

/// Which points of a sweep are the best. A figure compares points that do the same work: a smaller batch always takes
/// less time, and a broadcast has another bandwidth than an allreduce. So points are taken in groups that have the same
/// command, the same inputs that say what is computed or moved, and the same number of NPUs in their results, whether
/// --npus, the platform or the file of a job says it; a bandwidth or a number of images per second is compared across
/// sizes, batches and numbers of NPUs, too.
namespace hcclsim::study {

/// A column of figures, and whether more of it is better.
struct Criterion {
  std::string_view column;  ///< of figure_columns
  bool more = false;
};

/// "busbw_Bps", by what is better of it, or "busbw_Bps:min", "step_time_s:max"; throws Error(bad_input, "option").
[[nodiscard]] Criterion parse_criterion(std::string_view text);

/// The time of a step, of a collective or of a job.
[[nodiscard]] Criterion default_criterion(std::string_view command);

/// The same text for points whose figures of the column may be compared.
[[nodiscard]] std::string work_of(const StoredPoint& point, std::string_view column);

/// Done points of one group that are not stale, and the best of them.
struct RankedGroup {
  const StoredPoint* best = nullptr;
  std::size_t points = 0;
};

/// The groups in the order of their first points that have the figure; each by its default if no criterion is given.
[[nodiscard]] std::vector<RankedGroup> ranked(const std::vector<StoredPoint>& points,
                                              const std::optional<Criterion>& criterion);

/// The axes that differ between points.
[[nodiscard]] std::vector<std::string> axes_of(const std::vector<StoredPoint>& points);
/// Figures that some point has.
[[nodiscard]] std::vector<std::string_view> columns_in_use(const std::vector<StoredPoint>& points);

}  // namespace hcclsim::study
