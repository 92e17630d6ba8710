#include "hccl/training/traced_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "hccl/training/step_view.hpp"

namespace hcclsim::hccl {
namespace {

void name_cells(std::vector<TracedCell>& cells) {
  const bool chunks = std::ranges::any_of(cells, [](const TracedCell& cell) { return cell.chunk > 0; });
  for (TracedCell& cell : cells) {
    const char direction = cell.phase == StepPhase::forward ? 'F' : 'B';
    cell.name = chunks ? fmt::format("{}{}.{}", direction, cell.chunk, cell.micro_batch)
                       : fmt::format("{}{}", direction, cell.micro_batch);
  }
}

}  // namespace

std::vector<TracedCell> traced_cells(const Plan& plan, std::span<const sim::Span* const> spans) {
  std::map<std::tuple<std::int32_t, StepPhase, std::uint32_t, std::uint32_t>, TracedCell> found;
  bool several = plan.roles.size() > 1;
  for (const sim::Span* span : spans) {
    if (span->kind != sim::SpanKind::kernel) continue;
    const PlanTask* task = purpose_of(plan, *span).task;
    if (task == nullptr) continue;
    const Purpose& purpose = task->purpose;
    if (purpose.phase != StepPhase::forward && purpose.phase != StepPhase::backward) continue;
    several = several || purpose.micro_batch > 0;
    const auto [cell, is_new] =
        found.try_emplace({span->id.iteration, purpose.phase, purpose.chunk, purpose.micro_batch},
                          TracedCell{.iteration = span->id.iteration,
                                     .phase = purpose.phase,
                                     .stage = purpose.stage,
                                     .chunk = purpose.chunk,
                                     .micro_batch = purpose.micro_batch,
                                     .start = span->start,
                                     .end = span->end,
                                     .name = {}});
    cell->second.start = std::min(cell->second.start, span->start);
    cell->second.end = std::max(cell->second.end, span->end);
  }
  std::vector<TracedCell> cells;
  for (auto& [key, cell] : found) cells.push_back(std::move(cell));
  if (!several) cells.clear();
  std::ranges::stable_sort(cells, {}, &TracedCell::start);
  name_cells(cells);
  return cells;
}

}  // namespace hcclsim::hccl
