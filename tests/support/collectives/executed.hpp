#pragma once

#include <vector>

#include "hccl/schedule/schedule.hpp"
#include "tests/support/collectives/interpreter.hpp"

namespace hcclsim::test {

/// Outputs after the executor (hccl/execute/data_flow.hpp) has gone through a schedule of int64; `input` as of
/// make_input. Throws Error(internal) if it changes an input that is not the output.
[[nodiscard]] std::vector<Values> executed(const hccl::Schedule& schedule, std::vector<Values> input);

}  // namespace hcclsim::test
