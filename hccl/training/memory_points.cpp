#include "hccl/training/memory_points.hpp"

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

namespace hcclsim::hccl {

TensorMemory::TensorMemory(const Role& role) : role_(role) {
  if (role.program->tensors.empty()) return;
  const std::vector<models::Kernel>& kernels = role.program->kernels;
  begun_.resize(kernels.size(), 0);
  ended_.resize(kernels.size(), 0);
  const bool several =
      std::ranges::any_of(role.tasks, [](const PlanTask& task) { return task.purpose.micro_batch > 0; });
  for (const models::LiveTensor& tensor : role.program->tensors) {
    // The batch of a later micro-batch does not come with a cast that the first one launches for all.
    std::uint32_t first = tensor.first_kernel;
    while (several && first < tensor.last_kernel && kernels[first].launched != models::Launched::always) ++first;
    begun_[first] += tensor.bytes;
    ended_[tensor.last_kernel] += tensor.bytes;
  }
}

void TensorMemory::add(const sim::Span& span) {
  if (begun_.empty()) return;
  const PlanTask& task = role_.tasks[span.id.task];
  const auto* block = std::get_if<KernelBlock>(&task.work);
  const std::uint32_t at = block == nullptr ? task.kernel : block->first + span.id.part;
  if (at == Purpose::none) return;
  changes_.push_back({span.start, begun_[at], 0, span.kind == sim::SpanKind::kernel || begun_[at] > 0});
  changes_.push_back({span.end, 0, ended_[at], false});
}

std::vector<MemoryPoint> TensorMemory::points(Seconds zero) && {
  std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) { return a.date < b.date; });
  std::vector<MemoryPoint> points;
  Bytes live = 0;
  for (const Change& change : changes_) {
    live = live + change.begun - change.ended;
    const bool differs = points.empty() || points.back().bytes != live;
    if (change.shown && differs) points.push_back({change.date - zero, live});
  }
  return points;
}

}  // namespace hcclsim::hccl
