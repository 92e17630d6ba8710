#pragma once

#include <string>

#include "base/json.hpp"
#include "hccl/parallel/plan/plan.hpp"

/// A Plan in JSON: what every role's streams do, in order.
namespace hcclsim::hccl {

/// The Plan without the steps of its schedules: groups, collectives, messages, and the tasks of every role. The kernels
/// of a block are the names of the first and the last, their number and their time together.
[[nodiscard]] Json plan_json(const Plan& plan);
/// The inverse; a block has its whole time in its first kernel, a schedule the name of its algorithm alone. Throws
/// Error(bad_input, "plan") that names the file and the place for what is no Plan.
[[nodiscard]] Plan plan_of_json(const std::string& file, const Json& json);

}  // namespace hcclsim::hccl
