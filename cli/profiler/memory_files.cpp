#include <algorithm>
#include <vector>

#include "cli/profiler/profiled_rank.hpp"
#include "hccl/training/memory_points.hpp"
#include "hccl/training/step_view.hpp"

namespace hcclsim::cli {
namespace {

constexpr double mebibyte = 0x1p20;

/// Of an iteration; the last one, behind all work, is none.
std::vector<hccl::MemoryPoint> points_of(const ProfiledRank& rank, std::uint32_t step) {
  hccl::TensorMemory memory(rank.role());
  Seconds end = 0;
  for (const ProfiledOp& op : rank.ops()) {
    const bool is_of_plan = purpose_of(rank.step().plan, *op.span).task != nullptr;
    if (!is_of_plan || op.span->id.iteration + 1 != static_cast<std::int32_t>(step)) continue;
    memory.add(*op.span);
    end = std::max(end, op.span->end);
  }
  std::vector<hccl::MemoryPoint> points = std::move(memory).points(0);
  points.push_back({end, 0});
  return points;
}

}  // namespace

void write_memory_record(const ProfiledRank& rank, const device::HbmAccount& hbm, const Sink& sink) {
  Rows rows(sink);
  rows.add("Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Device Type");
  const Bytes lasting = hbm.peak() - hbm.activations;
  const auto add = [&](Seconds date, Bytes live, Bytes most) {
    const double allocated = static_cast<double>(lasting + live) / mebibyte;
    rows.add("MindSpore,{},{:.6f},{:.6f},{:.6f},NPU:{}", profiled_date(date), allocated,
             static_cast<double>(lasting + most) / mebibyte, allocated, rank.rank());
  };
  Bytes most = 0;
  for (const ProfiledStepWindow& window : rank.windows()) {
    const std::vector<hccl::MemoryPoint> points = points_of(rank, window.number);
    for (const hccl::MemoryPoint& point : points) most = std::max(most, point.bytes);
    for (const hccl::MemoryPoint& point : points) add(point.date, point.bytes, most);
  }
  rows.hand_on();
}

}  // namespace hcclsim::cli
