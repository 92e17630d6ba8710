#include "hccl/training/numerics/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

std::uint64_t elements_of(const Segment& segment, std::span<const device::ParameterSlot> parameters) {
  const device::ParameterSlot& last = parameters[segment.last];
  return last.offset + last.elements - parameters[segment.first].offset;
}

}  // namespace

GradientExchange::GradientExchange(std::span<const device::ParameterSlot> parameters,
                                   std::span<const SegmentReduction> reductions, device::Overflow overflow)
    : overflow_(overflow) {
  const auto some = std::ranges::find(reductions, false, &SegmentReduction::scattered);
  if (some != reductions.end()) {
    ranks_ = some->reduction.schedules.front()->ranks;
  }
  Bytes wire_bytes = 0;
  for (std::uint32_t s = 0; s < reductions.size(); ++s) {
    SegmentFlow segment{.offset = parameters[reductions[s].segment.first].offset,
                        .elements = elements_of(reductions[s].segment, parameters),
                        .wire = reductions[s].wire,
                        .cast_back = reductions[s].cast_back};
    if (reductions[s].scattered) {
      segments_.push_back(std::move(segment));
      continue;
    }
    const Schedule& schedule = *reductions[s].reduction.schedules.front();
    if (schedule.ranks != ranks_ || schedule.type != segment.wire || schedule.elements < segment.elements) {
      internal_error("the schedule of segment {} is for {} elements of {} on {} ranks, not {} of {} on {}", s,
                     schedule.elements, name_of(schedule.type), schedule.ranks, segment.elements, name_of(segment.wire),
                     ranks_);
    }
    segment.padded_elements = schedule.elements;
    segment.flow = std::make_shared<DataFlow>(schedule);
    segment.first_piece = pieces_.size();
    segment.wire_offset = wire_bytes;
    if (segment.on_wire()) wire_bytes += segment.padded_elements * size_of(segment.wire);
    for (std::size_t part = 0; part < segment.flow->parts(); ++part) pieces_.push_back({s, part});
    elements_ += segment.elements;
    segments_.push_back(std::move(segment));
  }
  for (Rank rank = 0; wire_bytes > 0 && rank < ranks_; ++rank) wires_.emplace_back(wire_bytes);
}

Bytes GradientExchange::wire_bytes(std::span<const device::ParameterSlot> parameters,
                                   const ReplicaCommunication& communication) {
  Bytes bytes = 0;
  for (const SegmentReduction& reduction : communication.reductions) {
    if (reduction.scattered) continue;
    const std::uint64_t elements = reduction.reduction.schedules.front()->elements;
    if (reduction.wire == DataType::fp32 && elements == elements_of(reduction.segment, parameters)) continue;
    bytes += elements * size_of(reduction.wire) * communication.replicas;
  }
  return bytes;
}

GradientExchange::Outcome GradientExchange::run(device::WorkerPool& pool, std::span<const std::uint32_t> segments,
                                                std::span<float* const> gradients, float scale, CheckedPart part,
                                                ReductionCheck& check) {
  workbenches_.resize(pool.workers());
  for (Workbench& workbench : workbenches_) {
    workbench.memory.resize(ranks_);
    workbench.outcome = {.overflow = false, .identical = true};
    workbench.check = {};
  }
  wanted_.clear();
  for (const std::uint32_t segment : segments) {
    const std::size_t first = segments_[segment].first_piece;
    for (std::size_t part = 0; part < segments_[segment].flow->parts(); ++part) wanted_.push_back(first + part);
  }
  const std::uint64_t distance = checked_distance(part, elements_);
  pool.for_each(wanted_.size(), [&](std::size_t item, unsigned worker) {
    const std::size_t piece = wanted_[item];
    run_piece(pieces_[piece], gradients, scale, distance > 0 && piece % distance == 0, workbenches_[worker]);
  });

  Outcome outcome{.overflow = false, .identical = true};
  for (const Workbench& workbench : workbenches_) {
    outcome.overflow = outcome.overflow || workbench.outcome.overflow;
    outcome.identical = outcome.identical && workbench.outcome.identical;
    check.merge(workbench.check);
  }
  for (const std::uint32_t segment : segments) {
    if (part == CheckedPart::none) break;
    check.additions = std::max(check.additions, segments_[segment].flow->additions());
    check.all_elements += segments_[segment].elements;
  }
  return outcome;
}

void GradientExchange::run_piece(const Piece& piece, std::span<float* const> gradients, float scale, bool checked,
                                 Workbench& workbench) {
  const SegmentFlow& segment = segments_[piece.segment];
  const Bytes element = size_of(segment.wire);
  for (Rank rank = 0; rank < ranks_; ++rank) {
    workbench.memory[rank] = segment.on_wire() ? wires_[rank].data() + segment.wire_offset
                                               : reinterpret_cast<std::byte*>(gradients[rank] + segment.offset);
  }
  workbench.sums.clear();
  workbench.sums_at.clear();
  const std::span<const ByteRange> ranges = segment.flow->outputs(piece.part);
  for (const ByteRange& range : ranges) {
    const std::uint64_t first = segment.offset + range.offset / element;
    const std::uint64_t count = segment.gradients_in(range);
    for (Rank rank = 0; rank < ranks_; ++rank) round(segment, {gradients[rank] + first, count}, workbench);
    if (checked) workbench.sums_at.push_back(workbench.sums.add(gradients, first, count));
    for (Rank rank = 0; segment.on_wire() && rank < ranks_; ++rank) {
      std::byte* const wire = workbench.memory[rank] + range.offset;
      std::fill(wire + count * element, wire + range.length, std::byte{0});
      if (device::narrow(segment.wire, overflow_, {gradients[rank] + first, count}, wire)) {
        workbench.outcome.overflow = true;
      }
    }
  }
  if (segment.flow->run(piece.part, {}, workbench.memory, overflow_, workbench.scratch)) {
    workbench.outcome.overflow = true;
  }
  const SumRounding rounding{segment.wire, segment.flow->additions() + (segment.narrowed() ? 1 : 0), ranks_};
  for (std::size_t number = 0; number < ranges.size(); ++number) {
    const ByteRange& range = ranges[number];
    const std::uint64_t first = segment.offset + range.offset / element;
    const std::uint64_t count = segment.gradients_in(range);
    for (Rank rank = 0; rank < ranks_; ++rank) {
      float* const reduced = gradients[rank] + first;
      if (segment.on_wire()) device::widen(segment.wire, workbench.memory[rank] + range.offset, {reduced, count});
      const bool same = rank == 0 || std::memcmp(reduced, gradients[0] + first, count * sizeof(float)) == 0;
      if (!same) workbench.outcome.identical = false;
      if (checked && (rank == 0 || !same)) {
        workbench.sums.compare({reduced, count}, workbench.sums_at[number], scale, rounding, workbench.check);
      }
    }
    for (Rank rank = 0; rank < ranks_; ++rank) round(segment, {gradients[rank] + first, count}, workbench);
  }
}

void GradientExchange::round(const SegmentFlow& segment, std::span<float> values, Workbench& workbench) const {
  if (!segment.cast_back.has_value()) return;
  if (device::round_in_place(*segment.cast_back, overflow_, values)) workbench.outcome.overflow = true;
}

}  // namespace hcclsim::hccl
