#pragma once

#include "hccl/schedule/schedule.hpp"

namespace hcclsim::test {

/// The same schedule as lists, in which the tasks of every queue alternate between two queues: after each task the one
/// tells the other by a local notify that it may go on.
[[nodiscard]] hccl::Schedule on_two_queues(const hccl::Schedule& schedule);

}  // namespace hcclsim::test
