#include "hccl/training/numerics/sharded_replicas.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "device/numerics/loops/gradient_checks.hpp"
#include "device/numerics/loops/rounding.hpp"

namespace hcclsim::hccl {
namespace {

/// Places of the parameters in the buffers of a computation.
std::vector<std::size_t> slots_of_parameters(const device::Computation& computation) {
  std::vector<std::size_t> slot_of(computation.parameters().size());
  for (std::size_t slot = 0; slot < slot_of.size(); ++slot) slot_of[computation.parameters()[slot].parameter] = slot;
  return slot_of;
}

}  // namespace

ShardedReplicas::ShardedReplicas(const device::Computation& computation, std::size_t owned, const Role& role,
                                 const ReplicaCommunication& communication, const device::OptimizerSettings& optimizer,
                                 device::Overflow overflow, std::uint64_t seed, device::WorkerPool& pool)
    : computation_(computation),
      owned_(owned),
      communication_(communication),
      gathers_(role.gathers),
      slot_of_(slots_of_parameters(computation)),
      updated_by_(communication.updated_by),
      shard_ranks_(communication.replicas),
      overflow_(overflow),
      reduced_(communication.reductions.size(), false),
      exchange_(computation.parameters(), communication.reductions, overflow) {
  std::vector<Rank> number_of(communication_.replicas, 0);  // of each replica's parts
  std::iota(number_of.begin(), number_of.end(), Rank{0});
  if (!gathers_.empty()) {
    for (const std::vector<Rank>& group : communication_.gathers.front().groups) {
      for (Rank part = 0; part < group.size(); ++part) number_of[group[part]] = part;
      shard_ranks_ = static_cast<Rank>(group.size());
    }
  }
  for (const device::ParameterSlot& slot : slots()) {
    const models::ParameterShare& share = role.program->parameters[slot.parameter];
    shard_.push_back(share.shards > 1 ? share.shard() : 0);
  }
  weights_.emplace_back(computation_);
  device::initialise(computation_, seed, pool, weights_.front());
  for (Rank replica = 1; replica < communication_.replicas; ++replica) {
    weights_.emplace_back(weights_.front());
    weights_.back().prepare(pool);
  }
  std::uint64_t block = 0;
  for (const SegmentReduction& reduction : communication_.reductions) {
    if (reduction.scattered) block = std::max(block, block_elements(reduction.segment));
    if (reduction.mirror) block = std::max(block, reduction.mirror->schedules.front()->elements);
  }
  for (const WeightGather& gather : gathers_) block = std::max(block, gathered_elements(gather));
  for (const ReplicaCollective& one : communication_.broadcasts) {
    block = std::max(block, one.schedules.front()->elements);
  }
  for (Rank replica = 0; replica < communication_.replicas; ++replica) {
    gradient_of_.push_back(buffers_.emplace_back(computation_.elements() * sizeof(float)).floats().data());
    kept_.push_back(make_kept(number_of[replica], optimizer));
    one_.emplace_back(block * sizeof(float));
    all_.emplace_back(block * shard_ranks_ * sizeof(float));
  }
  for (std::size_t replica = 0; replica < kept_.size(); ++replica) keep_weights(replica);
}

ShardedReplicas::Part ShardedReplicas::part_of(std::size_t slot, Rank part) const {
  const std::uint64_t all = slots()[slot].elements;
  if (!updated_by_.empty()) return {.elements = updated_by_[slot] == part ? all : 0};
  if (shard_[slot] == 0) return {.elements = all};
  const std::uint64_t first = std::min(part * shard_[slot], all);
  return {.first = first, .elements = std::min(shard_[slot], all - first)};
}

ShardedReplicas::Kept ShardedReplicas::make_kept(Rank part, const device::OptimizerSettings& optimizer) const {
  std::vector<Part> parts(owned_);
  std::vector<device::ParameterSlot> own;
  std::uint64_t elements = 0;
  std::uint64_t whole = 0;
  for (const bool shared : {false, true}) {
    for (std::size_t slot = 0; slot < owned_; ++slot) {
      if (all_keep(slot) == shared) continue;
      parts[slot] = part_of(slot, part);
      parts[slot].offset = elements;
      elements += parts[slot].elements;
      if (parts[slot].elements == 0) continue;
      own.push_back(slots()[slot]);
      own.back().offset = parts[slot].offset;
      own.back().elements = parts[slot].elements;
    }
    if (!shared) whole = elements;
  }
  return {.part = part,
          .parts = std::move(parts),
          .whole = whole,
          .elements = elements,
          .masters = device::MemoryBlock(elements * sizeof(float)),
          .gradients = device::MemoryBlock(elements * sizeof(float)),
          .optimizer = device::OptimizerState(optimizer, own)};
}

Bytes ShardedReplicas::bytes(const device::Computation& computation, const Role& role,
                             const ReplicaCommunication& communication, const device::OptimizerSettings& optimizer) {
  std::uint64_t kept = 0;
  for (const models::ParameterShare& share : role.program->parameters) {
    kept += share.shards > 1 ? share.shard() : share.elements;
  }
  if (communication.deals_parameters()) kept = (kept + communication.replicas - 1) / communication.replicas;
  const std::uint64_t elements = computation.elements();
  // Weights and gradients of the computation, what is kept, blocks on the wire.
  const Bytes each = computation.weights_bytes() + elements * sizeof(float) + 2 * kept * sizeof(float) +
                     device::OptimizerState::bytes(optimizer, kept) + (elements + kept) * sizeof(float);
  return communication.replicas * each + GradientExchange::wire_bytes(computation.parameters(), communication);
}

void ShardedReplicas::begin_step() { reduced_.assign(reduced_.size(), false); }

// ---- Collectives

const std::shared_ptr<const DataFlow>& ShardedReplicas::flow_of(const std::shared_ptr<const Schedule>& schedule) {
  std::shared_ptr<const DataFlow>& flow = flows_[schedule.get()];
  if (flow == nullptr) flow = std::make_shared<DataFlow>(*schedule);
  return flow;
}

bool ShardedReplicas::run(device::WorkerPool& pool, const ReplicaCollective& collective,
                          std::span<device::MemoryBlock> input, std::span<device::MemoryBlock> output) {
  bool overflowed = false;
  for (std::size_t group = 0; group < collective.groups.size(); ++group) {
    std::vector<const std::byte*> in;
    std::vector<std::byte*> out;
    for (const Rank replica : collective.groups[group]) {
      if (!input.empty()) in.push_back(input[replica].data());
      out.push_back(output[replica].data());
    }
    if (execute(*flow_of(collective.schedules[group]), in, out, overflow_, pool)) overflowed = true;
  }
  return overflowed;
}

void ShardedReplicas::borrow(std::size_t slot, const ParameterStore& owner, const device::ParameterSlot& place) {
  for (Rank replica = 0; replica < communication_.replicas; ++replica) {
    const std::span<const float> values = place.in(owner.weights_of(replica).values());
    std::ranges::copy(values, slots()[slot].in(weights_[replica].values()).begin());
  }
  changed_ = true;
}

void ShardedReplicas::prepare(device::WorkerPool& pool) {
  if (!changed_) return;
  for (device::Weights& weights : weights_) weights.prepare(pool);
  changed_ = false;
}

bool ShardedReplicas::reduce(device::WorkerPool& pool, std::span<const std::uint32_t> segments, float scale,
                             CheckedPart part, ReductionCheck& check) {
  bool overflowed = false;
  for (const std::uint32_t number : segments) {
    const SegmentReduction& reduction = communication_.reductions[number];
    if (reduction.scattered) {
      overflowed = scatter(pool, reduction) || overflowed;
      check_scattered(pool, reduction, scale, part, check);
      if (!reduction.mirror) overflowed = cast_back(pool, reduction) || overflowed;
    } else {
      const GradientExchange::Outcome outcome = exchange_.run(pool, {&number, 1}, gradient_of_, scale, part, check);
      overflowed = outcome.overflow || overflowed;
    }
    keep(pool, number, reduced_[number]);
  }
  return overflowed;
}

/// Until then parts have the type in which they are reduced.
bool ShardedReplicas::mirror(device::WorkerPool& pool, std::span<const std::uint32_t> segments, float scale,
                             CheckedPart part, ReductionCheck& check) {
  bool overflowed = false;
  for (const std::uint32_t number : segments) {
    const SegmentReduction& reduction = communication_.reductions[number];
    overflowed = pack_parts(pool, reduction) || overflowed;
    const Bytes packed = block_elements(reduction.segment) * size_of(reduction.wire);
    const Bytes moved = reduction.mirror->schedules.front()->elements * size_of(reduction.wire);
    for (device::MemoryBlock& one : one_) std::fill(one.data() + packed, one.data() + moved, std::byte{0});
    overflowed = run(pool, *reduction.mirror, {}, one_) || overflowed;
    check_mirrored(pool, reduction, scale, part, check);
    overflowed = cast_back(pool, reduction) || overflowed;
    keep(pool, number, false);
  }
  return overflowed;
}

std::uint64_t ShardedReplicas::block_elements(const Segment& segment) const {
  std::uint64_t elements = 0;
  for (std::uint32_t slot = segment.first; slot <= segment.last; ++slot) elements += shard_[slot];
  return elements;
}

bool ShardedReplicas::scatter(device::WorkerPool& pool, const SegmentReduction& reduction) {
  bool overflowed = pack(pool, reduction);
  return run(pool, reduction.reduction, all_, one_) || overflowed;
}

bool ShardedReplicas::pack_parts(device::WorkerPool& pool, const SegmentReduction& reduction) {
  const Bytes element = size_of(reduction.wire);
  std::atomic<bool> overflowed = false;
  pool.for_each(kept_.size(), [&](std::size_t replica, unsigned) {
    std::byte* to = one_[replica].data();
    for (std::uint32_t slot = reduction.segment.first; slot <= reduction.segment.last; ++slot) {
      const Part& own = kept_[replica].parts[slot];
      const std::span<float> values = kept_[replica].gradients.floats().subspan(own.offset, own.elements);
      if (device::narrow(reduction.wire, overflow_, values, to)) overflowed = true;
      std::memset(to + own.elements * element, 0, (shard_[slot] - own.elements) * element);
      to += shard_[slot] * element;
    }
  });
  return overflowed;
}

/// Lays out the gradients of every replica by the parts to which they go; where a parameter ends, zeros fill up.
bool ShardedReplicas::pack(device::WorkerPool& pool, const SegmentReduction& reduction) {
  const Segment& segment = reduction.segment;
  const Bytes element = size_of(reduction.wire);
  std::atomic<bool> overflowed = false;
  pool.for_each(kept_.size(), [&](std::size_t replica, unsigned) {
    std::byte* to = all_[replica].data();
    for (Rank part = 0; part < shard_ranks_; ++part) {
      for (std::uint32_t slot = segment.first; slot <= segment.last; ++slot) {
        const Part own = part_of(slot, part);
        const std::span<float> values = slots()[slot].in(gradients_of(replica)).subspan(own.first, own.elements);
        const std::optional<DataType> type = reduction.cast_back;
        if (type.has_value() && device::round_in_place(*type, overflow_, values)) overflowed = true;
        if (device::narrow(reduction.wire, overflow_, values, to)) overflowed = true;
        std::memset(to + own.elements * element, 0, (shard_[slot] - own.elements) * element);
        to += shard_[slot] * element;
      }
    }
  });
  return overflowed;
}

bool ShardedReplicas::cast_back(device::WorkerPool& pool, const SegmentReduction& reduction) {
  if (!reduction.cast_back.has_value()) return false;
  if (reduction.wire != DataType::fp32)
    internal_error("gradients are cast to fp32 to be reduced, and to no other type");
  std::atomic<bool> overflowed = false;
  const std::uint64_t elements = block_elements(reduction.segment);
  pool.for_each(kept_.size(), [&](std::size_t replica, unsigned) {
    if (device::round_in_place(*reduction.cast_back, overflow_, one_[replica].floats().first(elements))) {
      overflowed = true;
    }
  });
  return overflowed;
}

void ShardedReplicas::keep(device::WorkerPool& pool, std::uint32_t number, bool adds) {
  const SegmentReduction& reduction = communication_.reductions[number];
  pool.for_each(kept_.size(), [&](std::size_t replica, unsigned) {
    Kept& kept = kept_[replica];
    std::vector<float> values;
    std::uint64_t offset = 0;
    for (std::uint32_t slot = reduction.segment.first; slot <= reduction.segment.last; ++slot) {
      const Part& part = kept.parts[slot];
      values.resize(part.elements);
      if (reduction.scattered) {
        device::widen(reduction.wire, one_[replica].data() + offset * size_of(reduction.wire), values);
      } else {
        std::ranges::copy(slots()[slot].in(gradients_of(replica)).subspan(part.first, part.elements), values.begin());
      }
      offset += shard_[slot];
      const std::span<float> own = kept.gradients.floats().subspan(part.offset, part.elements);
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = adds ? own[i] + values[i] : values[i];
    }
  });
  reduced_[number] = true;
}

// ---- Checks

std::vector<ShardedReplicas::Piece> ShardedReplicas::pieces_of(const Segment& segment) const {
  constexpr std::uint64_t most_elements = std::uint64_t{1} << 16U;
  std::vector<Piece> pieces;
  for (Rank part = 0; part < shard_ranks_; ++part) {
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
                             .contributions = shard_ranks_};
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
      if (kept_[group.front()].part != piece.part) continue;
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

std::span<const float> ShardedReplicas::own_gradients(Rank replica) const {
  return kept_[replica].gradients.floats().first(kept_[replica].elements);
}

/// What all replicas have whole counts once, and of those with the same part the first one.
double ShardedReplicas::norm(device::WorkerPool& pool, double scale) const {
  std::vector<bool> seen(shard_ranks_, false);
  double sum = device::norm(pool, own_gradients(0).first(kept_.front().whole), scale);
  for (Rank replica = 0; replica < kept_.size(); ++replica) {
    const Kept& kept = kept_[replica];
    if (seen[kept.part]) continue;
    seen[kept.part] = true;
    sum = std::hypot(sum, device::norm(pool, own_gradients(replica).subspan(kept.whole), scale));
  }
  return sum;
}

bool ShardedReplicas::gradients_finite(device::WorkerPool& pool) const {
  for (Rank replica = 0; replica < kept_.size(); ++replica) {
    if (!device::all_finite(pool, own_gradients(replica))) return false;
  }
  return true;
}

bool ShardedReplicas::weights_finite(device::WorkerPool& pool) {
  return std::ranges::all_of(kept_, [&](Kept& kept) { return device::all_finite(pool, buffer_of(kept, 0)); });
}

void ShardedReplicas::compare_replicas(ReplicaCheck& check, bool gradients) const {
  std::vector<const Kept*> first(shard_ranks_, nullptr);  // of each part
  for (const Kept& kept : kept_) {
    const Kept& other = first[kept.part] == nullptr ? kept_.front() : *first[kept.part];
    const std::uint64_t common = first[kept.part] == nullptr ? kept.whole : kept.elements;
    if (first[kept.part] == nullptr) first[kept.part] = &kept;
    check.compare(kept.masters.floats().first(common), other.masters.floats().first(common));
    if (gradients) check.compare(kept.gradients.floats().first(common), other.gradients.floats().first(common));
  }
  for (Rank replica = 1; replica < kept_.size(); ++replica) {
    check.compare(std::as_const(weights_[0]).values(), std::as_const(weights_[replica]).values());
    if (gradients && !updated_by_.empty()) check.compare(gradients_of(0), gradients_of(replica));
  }
}

std::size_t ShardedReplicas::variants() const {
  ReplicaCheck check;
  compare_replicas(check, false);
  return check.differing_bits > 0 ? 2 : 1;
}

// ---- State

void ShardedReplicas::update(device::WorkerPool& pool, double learning_rate, float scale) {
  for (std::size_t replica = 0; replica < kept_.size(); ++replica) {
    Kept& kept = kept_[replica];
    kept.optimizer.step(pool, buffer_of(kept, 0), own_gradients(static_cast<Rank>(replica)), scale, learning_rate);
    for (std::size_t slot = 0; slot < owned_; ++slot) {
      if (!all_keep(slot)) continue;
      const Part& part = kept.parts[slot];
      std::ranges::copy(kept.masters.floats().subspan(part.offset, part.elements),
                        slots()[slot].in(weights_[replica].values()).begin());
    }
  }
  changed_ = true;
  prepare(pool);
}

std::span<float> ShardedReplicas::buffer_of(Kept& kept, std::size_t kind) {
  return (kind == 0 ? kept.masters.floats() : kept.optimizer.tensors()[kind - 1]).first(kept.elements);
}

void ShardedReplicas::read(std::size_t kind, std::size_t slot, std::span<float> stored) {
  for (Kept& kept : kept_) {
    const Part& part = kept.parts[slot];
    std::ranges::copy(buffer_of(kept, kind).subspan(part.offset, part.elements), stored.subspan(part.first).begin());
  }
}

void ShardedReplicas::write(std::size_t kind, std::size_t slot, std::span<const float> stored) {
  for (std::size_t replica = 0; replica < kept_.size(); ++replica) {
    Kept& kept = kept_[replica];
    const Part& part = kept.parts[slot];
    std::ranges::copy(stored.subspan(part.first, part.elements), buffer_of(kept, kind).subspan(part.offset).begin());
    if (kind == 0) std::ranges::copy(stored, slots()[slot].in(weights_[replica].values()).begin());
  }
  changed_ = changed_ || kind == 0;
}

void ShardedReplicas::restore_steps(std::uint64_t steps) {
  for (Kept& kept : kept_) kept.optimizer.restore_steps(steps);
}

}  // namespace hcclsim::hccl
