#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"

/// The differences between two schedules, in the form in which people review a change.
///
/// The header is compared field by field, the tasks as they are carried out: for every rank, stage and queue the two
/// lists of tasks with their numbers are aligned (alignment.hpp). Schedules that are written differently but do the
/// same are equal. A task that is in one list only has been
///
///     moved      the same task of the rank stands elsewhere: in the order, on another queue, in another stage
///     changed    between the same neighbours there is another task: other bytes, another peer, another kind
///     removed    from the first schedule
///     added      in the second
///
/// Stages correspond in the order of their names; stages that are written alike in both schedules are not unrolled.
namespace hcclsim::hccl {

/// A field of the header, as text.
struct FieldDifference {
  std::string name;
  std::string first;
  std::string second;
};

enum class ChangeKind : std::uint8_t { added, removed, moved, changed };
inline constexpr std::size_t change_kinds = 4;
[[nodiscard]] std::string_view name_of(ChangeKind kind);

/// A task in its schedule. `number` counts the tasks of the queue within the stage, from 0.
struct TaskPlace {
  Rank rank = 0;
  std::uint32_t stage = 0;  ///< of 0 … Schedule::stage_count()
  std::uint32_t queue = 0;
  std::uint32_t number = 0;
  std::string task;  ///< "write to 3: output 0+512 -> output 0+512"
};

struct TaskChange {
  ChangeKind kind = ChangeKind::added;
  std::optional<TaskPlace> first;   ///< missing if it was added
  std::optional<TaskPlace> second;  ///< missing if it was removed
};

/// The changes of two stages that correspond. A task that moved to another stage counts in its old stage.
struct StageDifference {
  std::string name;                                     ///< in the first schedule, if it is there
  std::array<std::uint64_t, change_kinds> transfers{};  ///< by ChangeKind; between ranks
  std::array<std::uint64_t, change_kinds> others{};     ///< copies, reductions, posts and waits
  std::vector<TaskChange> examples;                     ///< the first few of every kind
};

struct ScheduleDifference {
  std::vector<FieldDifference> fields;
  std::vector<StageDifference> stages;  ///< those with changes
  Rank ranks = 0;                       ///< of the larger schedule
  Rank compared_ranks = 0;              ///< the first of them, which all counts are of
  bool shown_for_all = false;           ///< the others are equal because those are

  [[nodiscard]] bool equal() const { return fields.empty() && stages.empty(); }
};

/// Tasks of both schedules together; some ten seconds.
inline constexpr std::uint64_t most_compared_tasks = 50'000'000;

/// Compares schedules that validate() has accepted, in time proportional to their tasks and memory proportional to the
/// tasks of one rank. The remaining ranks are left out once the schedules are known to differ and `most_tasks` tasks
/// have been looked at; also if the first `deciding_ranks` ranks are equal, where the caller knows that these decide
/// for all.
[[nodiscard]] ScheduleDifference difference(const Schedule& first, const Schedule& second,
                                            std::uint64_t most_tasks = most_compared_tasks,
                                            std::optional<Rank> deciding_ranks = {});

}  // namespace hcclsim::hccl
