#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hccl/collective/selection/selection.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "sim/trace.hpp"
#include "study/platform/platform.hpp"

/// The schedule of a collective on a platform, as a file, and what its tasks do in time, for a picture.
namespace hcclsim::study {

struct MakeSpec {
  PlatformSpec platform{};
  /// Without the number of ranks, the counts and the platform's configuration.
  hccl::CollectiveRequest request{};
  std::vector<std::uint64_t> counts{};  ///< of the blocks of a form with counts; empty: all are alike
  Rank ranks = 0;                       ///< 0: all
  hccl::ScheduleForm form = hccl::ScheduleForm::text;
};

/// A text that the platform decides, and what is to be said of the platform.
struct TextOnPlatform {
  std::string text;
  PlatformFacts on;
};

/// The contents of the schedule's file. Throws Error(bad_input) for what cannot be made.
[[nodiscard]] TextOnPlatform make_schedule(const MakeSpec& spec);

/// What `draw`, which is called in a child, makes of the trace of a schedule from that file with all its tasks.
[[nodiscard]] TextOnPlatform draw_schedule(const PlatformSpec& platform, const std::string& file,
                                           const std::shared_ptr<const hccl::Schedule>& schedule,
                                           const std::function<std::string(const sim::Trace&)>& draw);

/// What a rank does, in numbers.
struct RankTotals {
  std::uint64_t tasks = 0;
  std::uint64_t transfers = 0;
  Bytes written = 0;  ///< to others
  Bytes read = 0;     ///< from others
  Bytes reduced = 0;  ///< in its own memory
  Bytes copied = 0;
};
[[nodiscard]] RankTotals totals_of(const hccl::Schedule& schedule, Rank rank);

}  // namespace hcclsim::study
