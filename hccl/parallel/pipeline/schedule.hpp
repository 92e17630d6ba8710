#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/lowering/kernel.hpp"

/// The order in which the stages of a pipeline compute. The batch of a step is cut into micro-batches; each passes
/// forward through all stages and back. A stage may have several *chunks*, parts of the network that are not next to
/// each other: stage s of p has parts s, p + s, 2p + s and so on, so a micro-batch passes through every stage once per
/// chunk. What a stage computes of one micro-batch in one direction and chunk is a *cell*.
///
/// With m micro-batches, v chunks, and tF and tB the times of all forward and backward cells of a micro-batch on a
/// stage, a step takes (m + (p − 1) / v) · (tF + tB) if communication takes no time (Narayanan et al., "Efficient
/// large-scale language model training on GPU clusters", 2.2), also if m is no multiple of p: the messages between the
/// stages have an order that adds nothing to that (message_order.hpp). The schedules differ in the activations that are
/// alive.
namespace hcclsim::hccl {

enum class PipelineSchedule : std::uint8_t {
  one_f_one_b,             ///< as few forward cells ahead as keep the stages busy, then backward and forward in turn
  gpipe,                   ///< all forward cells, then all backward cells
  one_f_one_b_interleave,  ///< the first with several chunks
  gpipe_interleave,        ///< the second with several chunks
};

/// "1f1b", "gpipe", "1f1b-interleave", "gpipe-interleave".
[[nodiscard]] std::string_view name_of(PipelineSchedule schedule);
/// Inverse of name_of; throws Error(bad_input, "option").
[[nodiscard]] PipelineSchedule parse_pipeline_schedule(std::string_view name);
[[nodiscard]] constexpr bool interleaves(PipelineSchedule schedule) {
  return schedule >= PipelineSchedule::one_f_one_b_interleave;
}

/// Sizes of a pipeline.
struct PipelineShape {
  std::uint32_t stages = 1;
  std::uint32_t micro_batches = 1;
  std::uint32_t chunks = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  bool forward_only = false;  ///< cells of the backward pass are left out

  bool operator==(const PipelineShape&) const = default;
};

/// Throws Error(bad_input, "pipeline") for sizes of 0, in training fewer micro-batches than stages, chunks without an
/// interleaving schedule, and an interleaving schedule without chunks.
void require_shape(const PipelineShape& shape);

struct Cell {
  models::Phase phase = models::Phase::forward;
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;

  bool operator==(const Cell&) const = default;
};

/// What a stage computes in a step, in order; with one stage, backward follows each micro-batch's forward.
[[nodiscard]] std::vector<Cell> cells_of_stage(const PipelineShape& shape, std::uint32_t stage);

/// The most cells at a time that have run forward and not backward.
[[nodiscard]] std::uint32_t most_live_cells(const std::vector<Cell>& cells);

/// "F0 F1 B0 …"; with several chunks "F0.0", chunk before micro-batch.
[[nodiscard]] std::string to_string(const std::vector<Cell>& cells, std::uint32_t chunks);

}  // namespace hcclsim::hccl
