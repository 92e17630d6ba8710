#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "hccl/parallel/plan.hpp"

/// A Plan in text and in JSON: what every role's streams do, in order.
namespace hcclsim::hccl {

/// The tasks of a stream, a line each.
struct StreamText {
  std::uint32_t stage = 0;
  std::uint32_t role = 0;  ///< among those of the stage
  std::string whose;       ///< "stage 1"; where a stage has several roles "stage 1 ranks 4-6"
  std::string stream;      ///< "compute", "communication", "messages", …
  std::vector<std::string> lines;
};

/// Streams without tasks are left out.
[[nodiscard]] std::vector<StreamText> streams_of(const Plan& plan);

/// The Plan without its schedules: groups, collectives, messages, and the tasks of every role. The kernels of a block
/// are the names of the first and the last, their number and their time together.
[[nodiscard]] Json plan_json(const Plan& plan);
/// The inverse; a block has its whole time in its first kernel. Throws Error(bad_input, "plan") that names the file and
/// the place for what is no Plan.
[[nodiscard]] Plan plan_of_json(const std::string& file, const Json& json);

}  // namespace hcclsim::hccl
