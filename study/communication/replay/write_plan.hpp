#pragma once

#include <string>

#include "hccl/parallel/plan/plan.hpp"
#include "hccl/training/training.hpp"
#include "study/run/experiment/experiment.hpp"

/// The steps of a Plan as execution traces in files.
namespace hcclsim::study {

struct PlanTraceFiles {
  std::string chakra_folder{};  ///< empty: none
  std::string goal_file{};      ///< empty: none
};

/// Before a long simulation: throws Error(bad_input) if files cannot be written, or if a trace cannot carry what the
/// options ask for (trace_of()).
void require_writable(const PlanTraceFiles& files, const hccl::TrainingStep& training);

/// Throws Error(bad_input, "output"), what trace_of() throws, and for GOAL what write_goal() does.
void write_plan(const PlanTraceFiles& files, const hccl::Plan& plan, Experiment& experiment);

}  // namespace hcclsim::study
