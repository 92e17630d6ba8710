#pragma once

#include <string>
#include <vector>

#include "hccl/parallel/plan_file.hpp"
#include "study/run/spec.hpp"

/// Plans to be looked at: of the options of a run, or of a file.
namespace hcclsim::study {

/// A Plan that has been proved to come to its end.
struct PlanDocument {
  std::vector<hccl::StreamText> streams;
  std::string json;  ///< what read_plan reads
  std::uint64_t tasks = 0;
  std::uint64_t roles = 0;
  std::uint64_t ranks = 0;
  Seconds ideal = 0;  ///< of the step with links that take no time
};

/// Nothing is simulated. Throws Error(check_failed, "plan") for a Plan that cannot finish.
[[nodiscard]] PlanDocument plan_of_run(const RunSpec& spec);
/// Throws also Error(bad_input, "plan") for a file that holds no Plan.
[[nodiscard]] PlanDocument read_plan(const std::string& file);

/// A task that two Plans have differently; an empty text: the Plan has none there.
struct PlanDifference {
  std::uint32_t stage = 0;
  std::string whose;  ///< the stage, and the ranks where it has several roles
  std::string stream;
  std::size_t place = 0;  ///< in the stream
  std::string first;
  std::string second;
};

/// Stream by stream, in their order.
[[nodiscard]] std::vector<PlanDifference> differences(const PlanDocument& one, const PlanDocument& other);

}  // namespace hcclsim::study
