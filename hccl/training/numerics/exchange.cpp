#include "hccl/training/numerics/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// Takes one element into a check. What is not a number counts as infinitely far. The result does not depend on the
/// order of the elements.
void note(ReductionCheck& check, double difference, double bound) {
  constexpr double far = std::numeric_limits<double>::infinity();
  if (std::isnan(difference)) difference = far;
  if (std::isnan(bound)) bound = far;
  if (std::pair(difference, bound) > std::pair(check.largest_difference, check.bound)) {
    check.largest_difference = difference;
    check.bound = bound;
  }
  if (difference == 0) return;
  const double ratio = std::isinf(difference) ? far : difference / bound;
  check.worst_ratio = std::max(check.worst_ratio, ratio);
}

/// Joins the checks of two sets of elements.
void merge(ReductionCheck& check, const ReductionCheck& other) {
  note(check, other.largest_difference, other.bound);
  check.worst_ratio = std::max(check.worst_ratio, other.worst_ratio);
  check.elements += other.elements;
  check.vanished += other.vanished;
  check.overflowed += other.overflowed;
  check.not_numbers += other.not_numbers;
}

}  // namespace

GradientExchange::GradientExchange(std::span<const device::ParameterSlot> parameters, std::span<const Segment> segments,
                                   std::span<const std::shared_ptr<const Schedule>> schedules,
                                   device::Overflow overflow)
    : overflow_(overflow) {
  if (schedules.empty() || schedules.size() != segments.size()) {
    internal_error("{} schedules for {} segments", schedules.size(), segments.size());
  }
  ranks_ = schedules.front()->ranks;
  wire_ = schedules.front()->type;
  for (std::uint32_t s = 0; s < segments.size(); ++s) {
    const device::ParameterSlot& first = parameters[segments[s].first];
    const device::ParameterSlot& last = parameters[segments[s].last];
    SegmentFlow segment{.offset = first.offset, .elements = last.offset + last.elements - first.offset, .flow = {}};
    const Schedule& schedule = *schedules[s];
    if (schedule.ranks != ranks_ || schedule.type != wire_ || schedule.elements != segment.elements) {
      internal_error("the schedule of segment {} is for {} elements of {} on {} ranks, not {} of {} on {}", s,
                     schedule.elements, name_of(schedule.type), schedule.ranks, segment.elements, name_of(wire_),
                     ranks_);
    }
    segment.flow = std::make_shared<DataFlow>(schedule);
    segment.first_piece = pieces_.size();
    for (std::size_t part = 0; part < segment.flow->parts(); ++part) pieces_.push_back({s, part});
    elements_ += segment.elements;
    segments_.push_back(std::move(segment));
  }
  if (narrowed()) {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      wires_.emplace_back(elements_ * size_of(wire_));
    }
  }
}

Bytes GradientExchange::wire_bytes(DataType type, std::uint64_t elements, Rank ranks) {
  return type == DataType::fp32 ? 0 : elements * size_of(type) * ranks;
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
  const std::uint64_t distance = part == CheckedPart::none  ? 0
                                 : part == CheckedPart::all ? 1
                                                            : (elements_ + sampled_elements - 1) / sampled_elements;
  pool.for_each(wanted_.size(), [&](std::size_t item, unsigned worker) {
    const std::size_t piece = wanted_[item];
    run_piece(pieces_[piece], gradients, scale, distance > 0 && piece % distance == 0, workbenches_[worker]);
  });

  Outcome outcome{.overflow = false, .identical = true};
  for (const Workbench& workbench : workbenches_) {
    outcome.overflow = outcome.overflow || workbench.outcome.overflow;
    outcome.identical = outcome.identical && workbench.outcome.identical;
    merge(check, workbench.check);
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
  const Bytes element = size_of(wire_);
  for (Rank rank = 0; rank < ranks_; ++rank) {
    workbench.memory[rank] = narrowed() ? wires_[rank].data() + segment.offset * element
                                        : reinterpret_cast<std::byte*>(gradients[rank] + segment.offset);
  }
  workbench.sums.clear();
  workbench.magnitudes.clear();
  const std::span<const ByteRange> ranges = segment.flow->outputs(piece.part);
  for (const ByteRange& range : ranges) {
    const std::uint64_t first = segment.offset + range.offset / element;
    const std::uint64_t count = range.length / element;
    if (checked) add_up(gradients, first, count, workbench);
    for (Rank rank = 0; narrowed() && rank < ranks_; ++rank) {
      if (device::narrow(wire_, overflow_, {gradients[rank] + first, count}, workbench.memory[rank] + range.offset)) {
        workbench.outcome.overflow = true;
      }
    }
  }
  if (segment.flow->run(piece.part, {}, workbench.memory, overflow_, workbench.scratch)) {
    workbench.outcome.overflow = true;
  }
  std::size_t sums_at = 0;
  for (const ByteRange& range : ranges) {
    const std::uint64_t first = segment.offset + range.offset / element;
    const std::uint64_t count = range.length / element;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      float* const reduced = gradients[rank] + first;
      if (narrowed()) device::widen(wire_, workbench.memory[rank] + range.offset, {reduced, count});
      const bool same = rank == 0 || std::memcmp(reduced, gradients[0] + first, count * sizeof(float)) == 0;
      if (!same) workbench.outcome.identical = false;
      if (checked && (rank == 0 || !same)) {
        compare(reduced, count, sums_at, scale, segment.flow->additions() + (narrowed() ? 1 : 0), workbench);
      }
    }
    sums_at += count;
  }
}

/// Appends the fp64 sums of the gradients of all ranks, and of their magnitudes, to those of the workbench.
void GradientExchange::add_up(std::span<float* const> gradients, std::uint64_t first, std::uint64_t count,
                              Workbench& workbench) {
  const std::size_t begin = workbench.sums.size();
  workbench.sums.resize(begin + count, 0);
  workbench.magnitudes.resize(begin + count, 0);
  for (const float* const gradient : gradients) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const double value = gradient[first + i];
      workbench.sums[begin + i] += value;
      workbench.magnitudes[begin + i] += std::abs(value);
    }
  }
}

void GradientExchange::compare(const float* reduced, std::uint64_t count, std::size_t sums_at, float scale,
                               std::uint32_t roundings, Workbench& workbench) const {
  workbench.check.elements += count;
  const ReductionBound reduction_bound(wire_, roundings, ranks_);
  const double roundoff = device::unit_roundoff(DataType::fp32);
  const double below_normal = 0.5 * device::smallest_subnormal(DataType::fp32);
  const double largest = device::largest_finite(wire_);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double exact = workbench.sums[sums_at + i] * scale;
    const double difference = std::abs(static_cast<double>(reduced[i] * scale) - exact);
    // The product with the scale is rounded too.
    const double magnitudes = workbench.magnitudes[sums_at + i];
    if (std::isnan(magnitudes)) {
      ++workbench.check.not_numbers;
      continue;
    }
    const double rounding = reduction_bound(magnitudes);
    const double bound = rounding * scale + roundoff * std::abs(reduced[i] * scale) + below_normal;
    // No contribution and no partial sum is larger than the sum of the magnitudes and its rounding.
    const bool within_range = magnitudes + rounding <= largest;
    if (within_range || (std::isfinite(difference) && difference <= bound)) {
      note(workbench.check, difference, bound);
    } else {
      ++workbench.check.overflowed;
    }
    workbench.check.vanished += reduced[i] == 0 && exact != 0 ? 1 : 0;
  }
}

}  // namespace hcclsim::hccl
