#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"

/// A collective as GOAL can say it: messages and what they wait for. A transfer is a message of its bytes, by whoever
/// reads or writes; a notify is a message of one byte. What a rank does by itself, copies and reductions, takes no
/// time. A wait for a notify is also one for what was written to the rank before it was posted.
namespace hcclsim::study {

struct GoalOperation {
  enum class Kind : std::uint8_t { send, receive, join };  ///< join: nothing, behind all that it waits for

  Kind kind = Kind::join;
  Rank peer = 0;
  Bytes bytes = 0;
  std::uint32_t tag = 0;
  std::vector<std::uint32_t> after{};  ///< operations of the same rank; none: the collective's begin
};

struct GoalCollective {
  std::vector<std::vector<GoalOperation>> ranks;  ///< in any order; the last one of a rank is its end
  std::uint32_t tags = 0;                         ///< 0 … tags − 1 are used
};

/// Throws Error(bad_input, "schedule") for schedules that are too large to be written out.
[[nodiscard]] GoalCollective goal_collective(const hccl::Schedule& schedule);

}  // namespace hcclsim::study
