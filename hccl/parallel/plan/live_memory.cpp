#include "hccl/parallel/plan/live_memory.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// What a micro-batch has alive while a pass of it runs, and when it has ended.
struct PassMemory {
  Bytes most = 0;
  std::uint32_t kernel = 0;  // at which it is most
  Bytes left = 0;
};

std::vector<PassMemory> memory_of_passes(const models::Program& program, const std::vector<models::Pass>& passes) {
  std::vector<Bytes> begun(program.micro_batch_kernels + 1, 0);
  std::vector<Bytes> ended(begun);
  for (const models::LiveTensor& tensor : program.tensors) {
    begun[tensor.first_kernel] += tensor.bytes;
    ended[tensor.last_kernel] += tensor.bytes;
  }
  std::vector<PassMemory> memory;
  Bytes live = 0;
  for (const models::Pass& pass : passes) {
    PassMemory of_pass{.kernel = pass.first};
    for (std::uint32_t k = pass.first; k < pass.first + pass.count; ++k) {
      live += begun[k];
      if (live > of_pass.most) {
        of_pass.most = live;
        of_pass.kernel = k;
      }
      live -= ended[k];
    }
    of_pass.left = live;
    memory.push_back(of_pass);
  }
  return memory;
}

std::vector<Cell> cells_or_passes(const std::vector<Cell>& cells, const std::vector<models::Pass>& passes) {
  if (!cells.empty()) return cells;
  std::vector<Cell> all;
  for (const models::Pass& pass : passes) all.push_back({pass.phase, pass.chunk, 0});
  return all;
}

std::size_t pass_of(const Cell& cell, const std::vector<models::Pass>& passes) {
  const auto found = std::ranges::find_if(
      passes, [&](const models::Pass& pass) { return pass.phase == cell.phase && pass.chunk == cell.chunk; });
  return static_cast<std::size_t>(found - passes.begin());
}

}  // namespace

LivePeak live_peak(const models::Program& program, const std::vector<Cell>& cells) {
  const std::vector<models::Pass> passes = models::passes(program);
  const std::vector<PassMemory> memory = memory_of_passes(program, passes);
  LivePeak peak;
  std::map<std::uint32_t, Bytes> left;  // of micro-batches
  Bytes live = 0;
  for (const Cell& cell : cells_or_passes(cells, passes)) {
    const std::size_t pass = pass_of(cell, passes);
    if (pass == passes.size()) continue;  // nothing to compute in this direction
    Bytes& own = left[cell.micro_batch];
    const Bytes most = live - own + memory[pass].most;
    if (most > peak.bytes) {
      peak = {most, cell, memory[pass].kernel, static_cast<std::uint32_t>(left.size())};
    }
    live = live - own + memory[pass].left;
    own = memory[pass].left;
    if (own == 0) left.erase(cell.micro_batch);
  }
  return peak;
}

Bytes most_waiting_gradients(const models::Program& program, std::span<const Reduction> reductions, bool overlap) {
  if (program.parameters.empty()) return 0;  // measured gradients
  std::vector<std::uint32_t> pass_end(program.micro_batch_kernels, 0);
  for (const models::Pass& pass : models::passes(program)) {
    const std::uint32_t end = pass.first + pass.count;
    std::fill(pass_end.begin() + pass.first, pass_end.begin() + end, end - 1);
  }
  std::vector<Bytes> written(program.micro_batch_kernels, 0);
  std::vector<Bytes> reduced(written);
  for (const Reduction& reduction : reductions) {
    Bytes bytes = 0;
    std::uint32_t last = 0;
    for (std::uint32_t g = reduction.segment.first; g <= reduction.segment.last; ++g) {
      const models::Gradient& gradient = program.gradients[g];
      if (!program.parameters[gradient.parameter].keeps_part) continue;
      const Bytes whole = gradient.elements * size_of(gradient.dtype);
      written[gradient.kernel] += whole;
      bytes += whole;
      last = std::max(last, gradient.kernel);
    }
    if (bytes > 0) reduced[overlap ? last : pass_end[last]] += bytes;
  }
  Bytes most = 0;
  Bytes waiting = 0;
  for (std::uint32_t k = 0; k < program.micro_batch_kernels; ++k) {
    waiting += written[k];
    most = std::max(most, waiting);
    waiting -= reduced[k];
  }
  return most;
}

std::vector<LiveAtPeak> tensors_at_peak(const models::Program& program, const std::vector<Cell>& cells) {
  const std::vector<models::Pass> passes = models::passes(program);
  const LivePeak peak = live_peak(program, cells);
  // The latest pass that each micro-batch has begun, up to the peak.
  std::map<std::uint32_t, std::size_t> reached;
  for (const Cell& cell : cells_or_passes(cells, passes)) {
    const std::size_t pass = pass_of(cell, passes);
    if (pass < passes.size()) reached[cell.micro_batch] = pass;
    if (cell == peak.cell) break;
  }
  std::vector<LiveAtPeak> tensors;
  for (const models::LiveTensor& tensor : program.tensors) {
    std::uint32_t copies = 0;
    for (const auto& [micro, pass] : reached) {
      const bool now = micro == peak.cell.micro_batch;
      const std::uint32_t end = passes[pass].first + passes[pass].count;
      const bool begun = now ? tensor.first_kernel <= peak.kernel : tensor.first_kernel < end;
      const bool alive = now ? tensor.last_kernel >= peak.kernel : tensor.last_kernel >= end;
      if (begun && alive) ++copies;
    }
    if (copies == 0) continue;
    const bool batch = tensor.writer == models::LiveTensor::none;
    tensors.push_back({batch ? "input" : program.kernels[tensor.writer].name, tensor.bytes, copies});
  }
  std::ranges::stable_sort(tensors, [](const LiveAtPeak& one, const LiveAtPeak& other) {
    return one.bytes * one.copies > other.bytes * other.copies;
  });
  return tensors;
}

}  // namespace hcclsim::hccl
