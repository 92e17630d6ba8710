#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/pipeline/schedule.hpp"
#include "models/program.hpp"

/// Activations of all micro-batches that a rank has under way.
namespace hcclsim::hccl {

/// The moment at which most is alive.
struct LivePeak {
  Bytes bytes = 0;
  Cell cell{};                      ///< that is being computed
  std::uint32_t kernel = 0;         ///< of the program
  std::uint32_t micro_batches = 0;  ///< with tensors that are alive, this one included
};

/// Of the cells in their order; empty cells: the passes of the program for one micro-batch.
[[nodiscard]] LivePeak live_peak(const models::Program& program, const std::vector<Cell>& cells);

/// A tensor that is alive at the peak.
struct LiveAtPeak {
  std::string kernel;  ///< that makes it, or first reads the batch
  Bytes bytes = 0;
  std::uint32_t copies = 0;  ///< one for each micro-batch that has it
};

/// Those of the peak, the largest first.
[[nodiscard]] std::vector<LiveAtPeak> tensors_at_peak(const models::Program& program, const std::vector<Cell>& cells);

}  // namespace hcclsim::hccl
