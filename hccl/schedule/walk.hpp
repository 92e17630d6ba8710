#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"

/// Walks one queue of one rank through a schedule, one task after the other, without unrolling anything. This is the
/// single place where the closed forms of a Schedule become numbers.
namespace hcclsim::hccl {

/// A byte range with its numbers.
struct ByteRange {
  Buffer buffer = Buffer::output;
  Bytes offset = 0;
  Bytes length = 0;
};

/// The byte range that `range` means for `rank` in `place` (whose position is that in the strand's group).
[[nodiscard]] ByteRange resolve(const Schedule& schedule, const Range& range, Rank rank, const Place& place,
                                std::uint16_t strand_group);

/// Position of a queue inside one stage.
class QueueWalk {
 public:
  /// Goes to the start of what `queue` of `rank` does in the stage; false if it does nothing there.
  bool enter(const Schedule& schedule, std::uint32_t stage, Rank rank, std::uint32_t queue);

  /// The task at which the walk stands, or nullptr at the end of the stage.
  [[nodiscard]] const Task* task() const { return task_; }
  void next();

  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] std::uint16_t group() const { return strand_->group; }
  /// Peer of the current task as a rank of the communicator.
  [[nodiscard]] Rank peer(const Schedule& schedule, Rank rank) const;
  /// Notify slot of the current task.
  [[nodiscard]] std::uint32_t notify() const { return static_cast<std::uint32_t>(task_->notify.at(place_)); }

 private:
  void start_loop();

  const Strand* strand_ = nullptr;
  const Task* task_ = nullptr;
  const Task* loop_end_ = nullptr;
  std::uint32_t loop_ = 0;
  std::uint32_t rounds_ = 0;
  Place place_;
};

}  // namespace hcclsim::hccl
