#include "hccl/training/numerics/replicas/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <map>
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
  Bytes wire_bytes = 0;
  Rank ranks = 0;
  for (const SegmentReduction& reduction : reductions) {
    SegmentFlow segment{.offset = parameters[reduction.segment.first].offset,
                        .elements = elements_of(reduction.segment, parameters),
                        .wire = reduction.wire,
                        .cast_back = reduction.cast_back};
    if (reduction.scattered) {
      segments_.push_back(std::move(segment));
      continue;
    }
    segment.first_piece = pieces_.size();
    segment.wire_offset = wire_bytes;
    segment.padded_elements = reduction.reduction.schedules.front()->elements;
    if (segment.on_wire()) wire_bytes += segment.padded_elements * size_of(segment.wire);
    add_groups(reduction.reduction, segment);
    for (const std::vector<Rank>& group : segment.groups) ranks = std::max(ranks, std::ranges::max(group) + 1);
    elements_ += segment.elements;
    segments_.push_back(std::move(segment));
  }
  for (Rank rank = 0; wire_bytes > 0 && rank < ranks; ++rank) wires_.emplace_back(wire_bytes);
}

void GradientExchange::add_groups(const ReplicaCollective& reduction, SegmentFlow& segment) {
  std::map<const Schedule*, std::shared_ptr<const DataFlow>> flows;
  segment.groups = reduction.groups;
  for (std::size_t group = 0; group < reduction.groups.size(); ++group) {
    const Schedule& schedule = *reduction.schedules[group];
    if (schedule.ranks != reduction.groups[group].size() || schedule.type != segment.wire ||
        schedule.elements != segment.padded_elements || schedule.elements < segment.elements) {
      internal_error("the schedule of segment {} is for {} elements of {} on {} ranks, not {} of {} on {}",
                     segments_.size(), schedule.elements, name_of(schedule.type), schedule.ranks, segment.elements,
                     name_of(segment.wire), reduction.groups[group].size());
    }
    std::shared_ptr<const DataFlow>& flow = flows[&schedule];
    if (flow == nullptr) flow = std::make_shared<DataFlow>(schedule);
    segment.flows.push_back(flow);
    for (std::size_t part = 0; part < flow->parts(); ++part) {
      pieces_.push_back({static_cast<std::uint32_t>(segments_.size()), group, part});
    }
  }
  segment.pieces = pieces_.size() - segment.first_piece;
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
    workbench.outcome = {.overflow = false, .identical = true};
    workbench.check = {};
  }
  wanted_.clear();
  for (const std::uint32_t segment : segments) {
    const std::size_t first = segments_[segment].first_piece;
    for (std::size_t piece = 0; piece < segments_[segment].pieces; ++piece) wanted_.push_back(first + piece);
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
    for (const auto& flow : segments_[segment].flows) {
      check.additions = std::max(check.additions, flow->additions());
      check.all_elements += segments_[segment].elements;
    }
  }
  return outcome;
}

void GradientExchange::run_piece(const Piece& piece, std::span<float* const> gradients, float scale, bool checked,
                                 Workbench& workbench) {
  const SegmentFlow& segment = segments_[piece.segment];
  const Bytes element = size_of(segment.wire);
  const DataFlow& flow = *segment.flows[piece.group];
  workbench.gradients.clear();
  workbench.memory.clear();
  for (const Rank rank : segment.groups[piece.group]) {
    workbench.gradients.push_back(gradients[rank]);
    workbench.memory.push_back(segment.on_wire() ? wires_[rank].data() + segment.wire_offset
                                                 : reinterpret_cast<std::byte*>(gradients[rank] + segment.offset));
  }
  const std::span<float* const> own = workbench.gradients;
  const auto ranks = static_cast<Rank>(own.size());
  workbench.sums.clear();
  workbench.sums_at.clear();
  const std::span<const ByteRange> ranges = flow.outputs(piece.part);
  for (const ByteRange& range : ranges) {
    const std::uint64_t first = segment.offset + range.offset / element;
    const std::uint64_t count = segment.gradients_in(range);
    for (Rank rank = 0; rank < ranks; ++rank) round(segment, {own[rank] + first, count}, workbench);
    if (checked) workbench.sums_at.push_back(workbench.sums.add(own, first, count));
    for (Rank rank = 0; segment.on_wire() && rank < ranks; ++rank) {
      std::byte* const wire = workbench.memory[rank] + range.offset;
      std::fill(wire + count * element, wire + range.length, std::byte{0});
      if (device::narrow(segment.wire, overflow_, {own[rank] + first, count}, wire)) {
        workbench.outcome.overflow = true;
      }
    }
  }
  if (flow.run(piece.part, {}, workbench.memory, overflow_, workbench.scratch)) {
    workbench.outcome.overflow = true;
  }
  const SumRounding rounding{segment.wire, flow.additions() + (segment.narrowed() ? 1 : 0), ranks};
  for (std::size_t number = 0; number < ranges.size(); ++number) {
    const ByteRange& range = ranges[number];
    const std::uint64_t first = segment.offset + range.offset / element;
    const std::uint64_t count = segment.gradients_in(range);
    for (Rank rank = 0; rank < ranks; ++rank) {
      float* const reduced = own[rank] + first;
      if (segment.on_wire()) device::widen(segment.wire, workbench.memory[rank] + range.offset, {reduced, count});
      const bool same = rank == 0 || std::memcmp(reduced, own[0] + first, count * sizeof(float)) == 0;
      if (!same) workbench.outcome.identical = false;
      if (checked && (rank == 0 || !same)) {
        workbench.sums.compare({reduced, count}, workbench.sums_at[number], scale, rounding, workbench.check);
      }
    }
    for (Rank rank = 0; rank < ranks; ++rank) round(segment, {own[rank] + first, count}, workbench);
  }
}

void GradientExchange::round(const SegmentFlow& segment, std::span<float> values, Workbench& workbench) const {
  if (!segment.cast_back.has_value()) return;
  if (device::round_in_place(*segment.cast_back, overflow_, values)) workbench.outcome.overflow = true;
}

}  // namespace hcclsim::hccl
