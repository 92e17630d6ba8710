#include <algorithm>

#include "device/numerics/loops/rounding.hpp"
#include "hccl/training/numerics/replicas/sharded_replicas.hpp"

// Reduced gradients of which each replica keeps a part, against sums in fp64.
namespace hcclsim::hccl {
std::vector<ShardedReplicas::Piece> ShardedReplicas::pieces_of(const Segment& segment) const {
  constexpr std::uint64_t most_elements = std::uint64_t{1} << 16U;
  std::vector<Piece> pieces;
  for (Rank part = 0; part < shard_ranks_[segment.first]; ++part) {
    std::uint64_t offset = 0;
    for (std::uint32_t slot = segment.first; slot <= segment.last; ++slot) {
      const std::uint64_t end = std::min((part + 1) * shard_[slot], slots()[slot].elements);
      for (std::uint64_t first = part * shard_[slot]; first < end; first += most_elements) {
        const std::uint64_t elements = std::min(most_elements, end - first);
        pieces.push_back({part, slot, first, elements, offset + first - part * shard_[slot]});
      }
      offset += shard_[slot];
    }
  }
  return pieces;
}

void ShardedReplicas::check_pieces(device::WorkerPool& pool, const SegmentReduction& reduction, CheckedPart part,
                                   const CheckOfPiece& compare, ReductionCheck& check) const {
  const std::uint64_t distance = checked_distance(part, computation_.elements());
  const std::vector<Piece> pieces = pieces_of(reduction.segment);
  std::vector<ExactSums> sums(pool.workers());
  std::vector<ReductionCheck> checks(pool.workers());
  pool.for_each(pieces.size(), [&](std::size_t number, unsigned worker) {
    if (number % distance == 0) compare(pieces[number], sums[worker], checks[worker]);
  });
  for (const ReductionCheck& one : checks) check.merge(one);
}

/// Every group of replicas that share parameters has sums of its own.
void ShardedReplicas::check_scattered(device::WorkerPool& pool, const SegmentReduction& reduction, float scale,
                                      CheckedPart part, ReductionCheck& check) {
  if (part == CheckedPart::none) return;
  const std::uint32_t additions = flow_of(reduction.reduction.schedules.front())->additions();
  const SumRounding rounding{.wire = reduction.wire,
                             .roundings = additions + (reduction.wire == DataType::fp32 ? 0 : 1),
                             .contributions = shard_ranks_[reduction.segment.first]};
  const auto compare = [&](const Piece& piece, ExactSums& sums, ReductionCheck& found) {
    std::vector<float> reduced(piece.elements);
    for (const std::vector<Rank>& group : reduction.reduction.groups) {
      std::vector<float*> gradients;
      for (const Rank replica : group) gradients.push_back(gradient_of_[replica]);
      sums.clear();
      sums.add(gradients, slots()[piece.slot].offset + piece.first, piece.elements);
      device::widen(rounding.wire, one_[group[piece.part]].data() + piece.offset * size_of(rounding.wire), reduced);
      ReductionCheck one;
      sums.compare(reduced, 0, scale, rounding, one);
      if (&group != reduction.reduction.groups.data()) one.elements = 0;  // counted once
      found.merge(one);
    }
  };
  check_pieces(pool, reduction, part, compare, check);
  check.additions = std::max(check.additions, additions);
  for (const Piece& piece : pieces_of(reduction.segment)) check.all_elements += piece.elements;
}

/// Its elements are those of the scatter, and counted there.
void ShardedReplicas::check_mirrored(device::WorkerPool& pool, const SegmentReduction& reduction, float scale,
                                     CheckedPart part, ReductionCheck& check) {
  if (part == CheckedPart::none) return;
  const std::uint32_t additions = flow_of(reduction.mirror->schedules.front())->additions();
  const std::vector<std::vector<Rank>>& groups = reduction.mirror->groups;
  const SumRounding rounding{.wire = reduction.wire,
                             .roundings = additions + (reduction.wire == DataType::fp32 ? 0 : 1),
                             .contributions = static_cast<Rank>(groups.front().size())};
  const auto compare = [&](const Piece& piece, ExactSums& sums, ReductionCheck& found) {
    std::vector<float> reduced(piece.elements);
    for (const std::vector<Rank>& group : groups) {
      if (part_[piece.slot][group.front()] != piece.part) continue;
      std::vector<float*> parts;
      for (const Rank replica : group) parts.push_back(kept_[replica].gradients.floats().data());
      const Part& own = kept_[group.front()].parts[piece.slot];
      sums.clear();
      sums.add(parts, own.offset + piece.first - own.first, piece.elements);
      for (const Rank replica : group) {
        device::widen(rounding.wire, one_[replica].data() + piece.offset * size_of(rounding.wire), reduced);
        ReductionCheck one;
        sums.compare(reduced, 0, scale, rounding, one);
        one.elements = 0;
        found.merge(one);
      }
    }
  };
  check_pieces(pool, reduction, part, compare, check);
  check.additions = std::max(check.additions, additions);
}

}  // namespace hcclsim::hccl
