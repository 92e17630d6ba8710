#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/pipeline/schedule.hpp"
#include "hccl/parallel/stage_program.hpp"
#include "models/program.hpp"

/// Activations of all micro-batches that a rank has under way, and gradients that wait until they are reduced.
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

/// The most that is alive of gradients of which only parts are kept: a rank has them whole, in the type in which they
/// are reduced, from when they are written until the last one of their reduction is; without `overlap` until the pass
/// has ended.
[[nodiscard]] Bytes most_waiting_gradients(const models::Program& program, std::span<const Reduction> reductions,
                                           bool overlap);

/// A tensor that is alive at the peak.
struct LiveAtPeak {
  std::string kernel;  ///< that makes it, or first reads the batch
  Bytes bytes = 0;
  std::uint32_t copies = 0;  ///< one for each micro-batch that has it
};

/// Those of the peak, the largest first.
[[nodiscard]] std::vector<LiveAtPeak> tensors_at_peak(const models::Program& program, const std::vector<Cell>& cells);

}  // namespace hcclsim::hccl
