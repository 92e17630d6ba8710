#include "hccl/parallel/pipeline/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/error.hpp"
#include "base/names.hpp"

namespace hcclsim::hccl {
namespace {

using models::Phase;

struct NamedSchedule {
  std::string_view name;
  PipelineSchedule schedule;
};
constexpr std::array<NamedSchedule, 4> schedules{{{"1f1b", PipelineSchedule::one_f_one_b},
                                                  {"gpipe", PipelineSchedule::gpipe},
                                                  {"1f1b-interleave", PipelineSchedule::one_f_one_b_interleave},
                                                  {"gpipe-interleave", PipelineSchedule::gpipe_interleave}}};

std::vector<Cell> one_after_the_other(std::uint32_t micro_batches) {
  std::vector<Cell> cells;
  for (std::uint32_t micro = 0; micro < micro_batches; ++micro) {
    cells.push_back({Phase::forward, 0, micro});
    cells.push_back({Phase::backward, 0, micro});
  }
  return cells;
}

/// Forward cells in order, each from number `ahead` on behind a backward cell; the rest of the backward cells.
std::vector<Cell> in_turn(const std::vector<Cell>& forward, const std::vector<Cell>& backward, std::size_t ahead,
                          bool forward_first) {
  const std::size_t count = forward.size();
  ahead = std::min(ahead, count);
  std::vector<Cell> cells(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (std::size_t k = ahead; k < count; ++k) {
    if (forward_first) cells.push_back(forward[k]);
    cells.push_back(backward[k - ahead]);
    if (!forward_first) cells.push_back(forward[k]);
  }
  cells.insert(cells.end(), backward.begin() + static_cast<std::ptrdiff_t>(count - ahead), backward.end());
  return cells;
}

/// All cells of one direction; gpipe takes chunk by chunk, 1f1b loops over the chunks with p micro-batches at a time,
/// with what is left over m / p in the first loop.
std::vector<Cell> all_cells(const PipelineShape& shape, Phase phase, bool loops) {
  const std::uint32_t rest = shape.micro_batches % shape.stages;
  const auto loop = [&](const Cell& cell) {
    return !loops || cell.micro_batch < shape.stages + rest ? 0 : (cell.micro_batch - rest) / shape.stages;
  };
  std::vector<Cell> cells;
  for (std::uint32_t chunk = 0; chunk < shape.chunks; ++chunk) {
    for (std::uint32_t micro = 0; micro < shape.micro_batches; ++micro) cells.push_back({phase, chunk, micro});
  }
  const auto key = [&](const Cell& cell) {
    const std::uint32_t chunk = phase == Phase::forward ? cell.chunk : shape.chunks - 1 - cell.chunk;
    return std::tuple(loop(cell), chunk, cell.micro_batch);
  };
  std::ranges::sort(cells, {}, key);
  return cells;
}

}  // namespace

std::string_view name_of(PipelineSchedule schedule) { return schedules.at(static_cast<std::size_t>(schedule)).name; }

PipelineSchedule parse_pipeline_schedule(std::string_view name) {
  for (const NamedSchedule& one : schedules) {
    if (one.name == name) return one.schedule;
  }
  bad_input("option", "unknown pipeline schedule '{}'; use one of {}", name, names_in(schedules, &NamedSchedule::name));
}

void require_shape(const PipelineShape& shape) {
  if (shape.stages == 0 || shape.micro_batches == 0 || shape.chunks == 0) {
    bad_input("pipeline", "a pipeline needs at least 1 stage, 1 micro-batch and 1 chunk; got {}, {} and {}",
              shape.stages, shape.micro_batches, shape.chunks);
  }
  if (shape.micro_batches < shape.stages && shape.chunks > 1 && !shape.forward_only) {
    bad_input(
        "pipeline",
        "{} stages of {} chunks need at least as many micro-batches as stages, got {}: give --micro-batches {} or "
        "more",
        shape.stages, shape.chunks, shape.micro_batches, shape.stages);
  }
  if (shape.chunks > 1 && !interleaves(shape.schedule)) {
    bad_input("pipeline", "{} chunks per stage need an interleaving schedule, not {}: use {}-interleave", shape.chunks,
              name_of(shape.schedule), name_of(shape.schedule));
  }
  if (shape.chunks == 1 && interleaves(shape.schedule)) {
    bad_input("pipeline", "{} needs 2 or more chunks per stage: give --chunks", name_of(shape.schedule));
  }
  if (shape.chunks > 1 && shape.stages == 1) {
    bad_input("pipeline", "chunks are parts of a stage of a pipeline: give --stages 2 or more");
  }
}

std::vector<Cell> cells_of_stage(const PipelineShape& shape, std::uint32_t stage) {
  if (shape.forward_only) {
    const bool by_loops = interleaves(shape.schedule) && shape.schedule != PipelineSchedule::gpipe_interleave;
    return all_cells(shape, Phase::forward, by_loops && shape.micro_batches >= shape.stages);
  }
  if (shape.stages == 1) return one_after_the_other(shape.micro_batches);
  const bool gpipe = shape.schedule == PipelineSchedule::gpipe || shape.schedule == PipelineSchedule::gpipe_interleave;
  const std::vector<Cell> forward = all_cells(shape, Phase::forward, !gpipe);
  const std::vector<Cell> backward = all_cells(shape, Phase::backward, !gpipe);
  if (gpipe) return in_turn(forward, backward, forward.size(), true);
  if (shape.schedule == PipelineSchedule::one_f_one_b) return in_turn(forward, backward, shape.stages - stage, false);
  const std::uint32_t first_loop = shape.stages + shape.micro_batches % shape.stages;
  return in_turn(forward, backward, first_loop * (shape.chunks - 1) + 2 * (shape.stages - 1 - stage), true);
}

std::uint32_t most_live_cells(const std::vector<Cell>& cells) {
  // Without a backward pass nothing of a cell is kept.
  if (std::ranges::none_of(cells, [](const Cell& cell) { return cell.phase == Phase::backward; })) return 1;
  std::uint32_t live = 0;
  std::uint32_t most = 0;
  for (const Cell& cell : cells) {
    live = cell.phase == Phase::forward ? live + 1 : live - 1;
    most = std::max(most, live);
  }
  return most;
}

std::string to_string(const std::vector<Cell>& cells, std::uint32_t chunks) {
  std::string text;
  for (const Cell& cell : cells) {
    if (!text.empty()) text += ' ';
    text += cell.phase == Phase::forward ? 'F' : 'B';
    if (chunks > 1) text += fmt::format("{}.", cell.chunk);
    text += fmt::format("{}", cell.micro_batch);
  }
  return text;
}

}  // namespace hcclsim::hccl
