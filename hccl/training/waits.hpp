#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/training/message_starts.hpp"
#include "sim/intervals.hpp"
#include "sim/trace.hpp"

/// What keeps the kernels of a rank waiting. A task begins when all tasks that it waits for have ended. The one of them
/// that ended last held it up, and so did the one that held up that one, and so on back to the kernel before. Other
/// communication that is under way meanwhile holds nothing up, though it may make that which does slower.
namespace hcclsim::hccl {

/// Kernels wait for this task, which is communication or the host's.
struct Wait {
  const PlanTask* task = nullptr;
  sim::Interval time{};  ///< communication from when it is under way; dates of the trace
};

/// Of a rank in an iteration: the waits of each stream that has kernels, the compute stream first, then those of the
/// end of the step behind the last kernel. Waits in one list do not overlap.
[[nodiscard]] std::vector<std::vector<Wait>> waits_of(const Plan& plan, const sim::Trace& trace, Rank rank,
                                                      std::int32_t iteration, const MessageStarts& messages);

}  // namespace hcclsim::hccl
