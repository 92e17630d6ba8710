#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/schedule/schedule.hpp"

/// Checks schedules that people or other programs wrote, before anything walks them: everything they name must exist,
/// and no closed form may go beyond it. Closed forms are linear, so checking their extremes over positions, rounds and
/// queues covers all ranks at once. Byte ranges result from nested cuts; they are computed task by task, on as many
/// evenly spaced ranks as a fixed number of tasks allows. The rest is found only when the schedule is run: byte ranges
/// of the other ranks of a large schedule, and everything about the order of tasks (hccl/execute/moves.hpp).
namespace hcclsim::hccl {

/// Far beyond any memory: keeps sums in bounds.
inline constexpr Bytes most_buffer_bytes = Bytes{1} << 50U;

/// One step of a path to a place in a schedule: a field of its file form (hccl/schedule/file/schedule.proto), and its
/// index if there are several.
struct FieldStep {
  std::string field;
  int index = -1;
};
using FieldPlace = std::vector<FieldStep>;

/// "stage[0].strand[1].loop[0].task[2].notify".
[[nodiscard]] std::string text_of(const FieldPlace& place);

/// What is wrong with a schedule, and where. Code bad_input, kind "schedule".
class ScheduleError : public Error {
 public:
  ScheduleError(FieldPlace place, std::string problem);

  [[nodiscard]] const FieldPlace& place() const { return place_; }
  /// The message without the place.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  FieldPlace place_;
  std::string problem_;
};

/// Throws ScheduleError for the first thing that is wrong.
void validate(const Schedule& schedule);
/// All that is wrong with sizes, groups, closed forms and lists: without byte ranges, which the checker looks at task
/// by task once these are right. What cannot be told because of something else is left out: closed forms while groups
/// are wrong, everything while the number of ranks is. `known` was found before, with something harmless in its place,
/// and comes first.
[[nodiscard]] std::vector<ScheduleError> defects_of(const Schedule& schedule, std::vector<ScheduleError> known = {});

}  // namespace hcclsim::hccl
