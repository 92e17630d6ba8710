#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"

/// Walks one queue of one rank through a schedule, one task after the other, without unrolling anything. Closed forms
/// of a Schedule become numbers only here.
namespace hcclsim::hccl {

/// A byte range with its numbers.
struct ByteRange {
  Buffer buffer = Buffer::output;
  Bytes offset = 0;
  Bytes length = 0;
};

/// Bytes that a task moves from one piece of memory to another of the same length.
struct Movement {
  ByteRange source;
  ByteRange destination;
};

/// Who evaluates a range, and whose memory it is.
struct Viewer {
  Rank rank = 0;   ///< whose positions the closed forms see
  Rank owner = 0;  ///< whose buffer it is: blocks may have other sizes on other ranks
  Place place;     ///< position in the strand's group
  std::uint16_t strand_group = 0;
};

/// Tasks of all ranks, posts and waits among them.
[[nodiscard]] std::uint64_t task_count(const Schedule& schedule);
/// Tasks of one of them.
[[nodiscard]] std::uint64_t task_count(const Schedule& schedule, Rank rank);

/// The pieces of a range in their order, neighbours joined; none has length 0.
void resolve(const Schedule& schedule, const Range& range, const Viewer& viewer, std::vector<ByteRange>& pieces);
/// Bytes of all pieces.
[[nodiscard]] Bytes length_of(const Schedule& schedule, const Range& range, const Viewer& viewer);

/// What a task moves, piece by piece; the object keeps its memory for the next task. If the two sides of the task
/// differ in length, so do the two sides of the last movement.
class Movements {
 public:
  void resolve(const Schedule& schedule, const Task& task, const Viewer& source, const Viewer& destination);

  [[nodiscard]] auto begin() const { return list_.begin(); }
  [[nodiscard]] auto end() const { return list_.end(); }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  [[nodiscard]] const Movement& operator[](std::size_t i) const { return list_[i]; }

 private:
  std::vector<Movement> list_;
  std::vector<ByteRange> sources_;
  std::vector<ByteRange> destinations_;
};

/// Position of a queue inside one stage.
class QueueWalk {
 public:
  /// Goes to the first task of `queue` of `rank` in stage number `stage` (0 … Schedule::stage_count() − 1); false if it
  /// has none there.
  bool enter(const Schedule& schedule, std::uint32_t stage, Rank rank, std::uint32_t queue);

  /// The task at which the walk stands, or nullptr at the end of the stage.
  [[nodiscard]] const Task* task() const { return task_; }
  void next();
  /// The same, but past rounds in which all transfers and posts have the peers of the round before.
  void next_with_other_peers();

  /// Tasks of the queue in this stage. Only before the first next().
  [[nodiscard]] std::uint64_t count() const;

  [[nodiscard]] const Place& place() const { return place_; }
  /// Number of the strand's loop that the current task is in; 0 in a list of tasks.
  [[nodiscard]] std::uint32_t loop() const { return loop_; }
  /// Peer of the current task as a rank of the communicator; of a local post the rank itself.
  [[nodiscard]] Rank peer(const Schedule& schedule, Rank rank) const;
  /// Notify slot of the current task.
  [[nodiscard]] std::uint32_t notify() const { return static_cast<std::uint32_t>(task_->notify.at(place_)); }

  /// How `rank` sees the source or the destination of the current task.
  [[nodiscard]] Viewer source_viewer(const Schedule& schedule, Rank rank) const;
  [[nodiscard]] Viewer destination_viewer(const Schedule& schedule, Rank rank) const;
  /// Bytes that the current task moves.
  [[nodiscard]] Bytes bytes(const Schedule& schedule, Rank rank) const {
    return length_of(schedule, task_->source, source_viewer(schedule, rank));
  }
  /// What the current task moves.
  void movements(const Schedule& schedule, Rank rank, Movements& movements) const {
    movements.resolve(schedule, *task_, source_viewer(schedule, rank), destination_viewer(schedule, rank));
  }

 private:
  void start_loop();
  [[nodiscard]] std::uint16_t group() const { return strand_ == nullptr ? 0 : strand_->group; }

  const Strand* strand_ = nullptr;  // null in a list of tasks
  const Task* task_ = nullptr;
  const Task* loop_end_ = nullptr;
  std::uint32_t loop_ = 0;
  std::uint32_t rounds_ = 0;
  Place place_;
};

/// Calls visit(stage, walk) for every task of a rank, stage by stage and queue by queue.
template <typename Visit>
void for_each_task(const Schedule& schedule, Rank rank, const Visit& visit) {
  const std::uint32_t stages = schedule.stage_count();
  QueueWalk walk;
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    for (std::uint32_t queue = 0; queue < schedule.queues; ++queue) {
      for (walk.enter(schedule, stage, rank, queue); walk.task() != nullptr; walk.next()) {
        visit(stage, static_cast<const QueueWalk&>(walk));
      }
    }
  }
}

/// Calls visit(stage, walk) for transfers of a rank and its posts to others, so that every pair of queue and peer of a
/// stage is among them; of rounds and windows that are alike, for one.
template <typename Visit>
void for_each_peer(const Schedule& schedule, Rank rank, const Visit& visit) {
  const auto has_lists = [](const Stage& stage) { return !stage.lists.empty(); };
  const bool alike = std::none_of(schedule.stages.begin(), schedule.stages.end(), has_lists);
  const std::uint32_t stages = alike ? static_cast<std::uint32_t>(schedule.stages.size()) : schedule.stage_count();
  QueueWalk walk;
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    for (std::uint32_t queue = 0; queue < schedule.queues; ++queue) {
      for (walk.enter(schedule, stage, rank, queue); walk.task() != nullptr; walk.next_with_other_peers()) {
        if (has_peer(walk.task()->kind)) visit(stage, static_cast<const QueueWalk&>(walk));
      }
    }
  }
}

/// The same for transfers alone.
template <typename Visit>
void for_each_way(const Schedule& schedule, Rank rank, const Visit& visit) {
  for_each_peer(schedule, rank, [&visit](std::uint32_t stage, const QueueWalk& walk) {
    if (is_transfer(walk.task()->kind)) visit(stage, walk);
  });
}

/// Whether the transfers of both go the same ways: closed forms with the same groups, rounds and peers. Their bytes may
/// differ. False also if it cannot be seen so.
[[nodiscard]] bool same_ways(const Schedule& first, const Schedule& second);

}  // namespace hcclsim::hccl
