#include "study/communication/replay/write_plan.hpp"

#include <string_view>

#include "base/output_file.hpp"
#include "study/communication/replay/chakra/write_chakra.hpp"
#include "study/communication/replay/goal/write_goal.hpp"
#include "study/communication/replay/plan_trace.hpp"

namespace hcclsim::study {
namespace {

bool are_wanted(const PlanTraceFiles& files) { return !files.chakra_folder.empty() || !files.goal_file.empty(); }

}  // namespace

void require_writable(const PlanTraceFiles& files, const hccl::TrainingStep& training) {
  if (!are_wanted(files)) return;
  require_traceable(training);
  if (!files.chakra_folder.empty()) require_writable_chakra(files.chakra_folder, training.step.npus);
  if (!files.goal_file.empty()) const OutputFile unused(files.goal_file);  // dropped
}

void write_plan(const PlanTraceFiles& files, const hccl::Plan& plan, Experiment& experiment) {
  if (!are_wanted(files)) return;
  const ExecutionTrace trace = trace_of(plan, experiment.training);
  if (!files.chakra_folder.empty()) write_chakra(trace, files.chakra_folder);
  if (files.goal_file.empty()) return;
  OutputFile file(files.goal_file);
  TraceSchedules schedules(trace, experiment.cluster, experiment.soc, experiment.config, DataType::fp32);
  write_goal(trace, schedules, [&](std::string_view piece) { file.write(piece); });
  file.commit();
}

}  // namespace hcclsim::study
