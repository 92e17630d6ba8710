#include "hccl/training/trace_points.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <variant>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace hcclsim::hccl {
namespace {

constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

/// "layer1.0.conv1" of "layer1.0.conv1:forward".
std::string_view operator_of(const models::Kernel& kernel) {
  return std::string_view(kernel.name).substr(0, kernel.name.rfind(':'));
}

void require_operator(const Role& role, std::string_view option, const std::string& name) {
  if (name.empty()) return;
  std::set<std::string> known;
  for (const models::Kernel& kernel : role.program->kernels) {
    if (kernel.phase != models::Phase::update) known.emplace(operator_of(kernel));
  }
  if (known.contains(name)) return;
  const std::vector<std::string> names(known.begin(), known.end());
  bad_input("option", "{}: the rank computes no operator '{}'{}; 'hcclsim models show' lists them", option, name,
            did_you_mean(name, names));
}

}  // namespace

void choose_trace_points(std::vector<IterationPoints>& iterations, const Plan& plan, const sim::Trace& trace, Rank rank,
                         const TracePoints& points) {
  if (points.fp_operator.empty() && points.bp_operator.empty()) return;
  const Role& role = plan.role(rank);
  require_operator(role, "--fp-point", points.fp_operator);
  require_operator(role, "--bp-point", points.bp_operator);
  std::vector<sim::Interval> found(iterations.size(), {never, -never});
  for (const sim::Span& span : trace.spans()) {
    if (span.rank != rank || span.kind != sim::SpanKind::kernel) continue;
    const SpanPurpose purpose = purpose_of(plan, span);
    const auto* const block = purpose.task == nullptr ? nullptr : std::get_if<KernelBlock>(&purpose.task->work);
    const auto index = static_cast<std::size_t>(span.id.iteration);
    if (block == nullptr || index >= found.size()) continue;
    const std::string_view name = operator_of(role.program->kernels[block->first + span.id.part]);
    if (purpose.phase == StepPhase::forward && name == points.fp_operator) {
      found[index].start = std::min(found[index].start, span.start);
    }
    if (purpose.phase == StepPhase::backward && name == points.bp_operator) {
      found[index].end = std::max(found[index].end, span.end);
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].start < never) iterations[i].fp_start = found[i].start;
    if (found[i].end > -never) iterations[i].bp_end = found[i].end;
  }
}

}  // namespace hcclsim::hccl
