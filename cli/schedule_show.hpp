#pragma once

#include <string>

#include "hccl/schedule/schedule.hpp"

namespace hcclsim::cli {

/// The tasks of one rank as a table: stage, queue, round, what is done with which peer, bytes and notify slot. Throws
/// Error(bad_input, "option") if there is no such rank.
[[nodiscard]] std::string schedule_table(const hccl::Schedule& schedule, Rank rank);

}  // namespace hcclsim::cli
