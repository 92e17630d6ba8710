#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/schedule/schedule.hpp"

/// Schedules that people or other programs wrote are looked at before anything walks them: what they name must exist,
/// and no closed form may lead beyond it. Closed forms are linear, so their extremes over positions, rounds and queues
/// say so for all ranks at once. Byte ranges follow from cuts of cuts; they are computed, task by task, on as many
/// ranks, evenly spaced, as a fixed number of tasks allows. What is left to a run, which refuses it, too: byte ranges
/// of the other ranks of a large schedule, and everything about the order of tasks (hccl/execute/moves.hpp).
namespace hcclsim::hccl {

/// One step on the way to a place in a schedule: a field of its file form (hccl/schedule/file/schedule.proto), and
/// which one if there are several.
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

}  // namespace hcclsim::hccl
