#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "sim/trace.hpp"

/// What a rank computes of one micro-batch in one direction and chunk, as a timeline shows it.
namespace hcclsim::hccl {

struct TracedCell {
  std::int32_t iteration = 0;
  StepPhase phase = StepPhase::forward;  ///< forward or backward
  std::uint32_t stage = 0;
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;
  Seconds start = 0;  ///< of its first kernel; dates of the trace
  Seconds end = 0;    ///< of its last one
  std::string name;   ///< "F3", "B0"; of a rank with several chunks "F1.3", chunk before micro-batch
};

/// Of the spans of one rank, in the order in which they begin. None in a step of one micro-batch and one role, where
/// they would say nothing.
[[nodiscard]] std::vector<TracedCell> traced_cells(const Plan& plan, std::span<const sim::Span* const> spans);

}  // namespace hcclsim::hccl
