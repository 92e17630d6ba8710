#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hccl/parallel/comm_reuse/comm_reuse.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/parallel/plan/plan_difference.hpp"
#include "hccl/parallel/plan/plan_text.hpp"
#include "study/spec/run_spec.hpp"

/// Plans to be looked at: of the options of a run, or of a file.
namespace hcclsim::study {

/// A Plan that has been proved to come to its end.
struct PlanDocument {
  hccl::Plan plan;
  std::uint64_t tasks = 0;
  Seconds ideal = 0;                                  ///< of the step with links that take no time
  std::optional<hccl::CommReuseReport> comm_reuse{};  ///< of a run that asks for it
};

/// Nothing is simulated. Throws Error(check_failed, "plan") for a Plan that cannot finish, and what comm_reuse_of()
/// throws.
[[nodiscard]] PlanDocument plan_of_run(const RunSpec& spec);
/// Throws also Error(bad_input, "plan") for a file that holds no Plan.
[[nodiscard]] PlanDocument read_plan(const std::string& file);

[[nodiscard]] std::vector<hccl::StreamText> streams_of(const PlanDocument& document);
/// What read_plan() reads.
[[nodiscard]] std::string json_of(const PlanDocument& document);
[[nodiscard]] std::vector<hccl::PlanDifference> differences(const PlanDocument& one, const PlanDocument& other);

}  // namespace hcclsim::study
