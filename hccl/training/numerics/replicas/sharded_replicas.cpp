#include "hccl/training/numerics/replicas/sharded_replicas.hpp"

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
                                 const ReplicaCommunication& communication, const ParameterParts& parts,
                                 const device::OptimizerSettings& optimizer, device::Overflow overflow,
                                 std::uint64_t seed, device::WorkerPool& pool)
    : computation_(computation),
      held_(parts),
      owned_(owned),
      communication_(communication),
      gathers_(role.gathers),
      slot_of_(slots_of_parameters(computation)),
      updated_by_(communication.updated_by),
      overflow_(overflow),
      reduced_(communication.reductions.size(), false),
      exchange_(computation.parameters(), communication.reductions, overflow) {
  for (const device::ParameterSlot& slot : slots()) {
    const models::ParameterShare& share = role.program->parameters[slot.parameter];
    shard_.push_back(share.shards > 1 ? share.shard() : 0);
  }
  number_parts();
  for (Rank replica = 0; replica < communication_.replicas; ++replica) {
    Rank alike = 0;
    while (!parts.alike(alike, replica)) ++alike;
    if (alike < replica) {
      weights_.emplace_back(weights_[alike]);
      weights_.back().prepare(pool);
    } else {
      weights_.emplace_back(computation_);
      parts.initialise(computation_, seed, replica, pool, weights_.back());
    }
  }
  std::uint64_t one = 0;  // elements of blocks
  std::uint64_t all = 0;
  const auto needs = [&](std::uint64_t block, std::size_t ranks) {
    one = std::max(one, block);
    all = std::max(all, block * ranks);
  };
  for (const SegmentReduction& reduction : communication_.reductions) {
    if (reduction.scattered) needs(block_elements(reduction.segment), reduction.reduction.groups.front().size());
    if (reduction.mirror) needs(reduction.mirror->schedules.front()->elements, 1);
  }
  for (std::size_t number = 0; number < gathers_.size(); ++number) {
    needs(gathered_elements(gathers_[number]), communication_.gathers[number].groups.front().size());
  }
  for (const ReplicaCollective& broadcast : communication_.broadcasts) needs(broadcast.schedules.front()->elements, 1);
  for (Rank replica = 0; replica < communication_.replicas; ++replica) {
    gradient_of_.push_back(buffers_.emplace_back(computation_.elements() * sizeof(float)).floats().data());
    kept_.push_back(make_kept(replica, optimizer));
    one_.emplace_back(one * sizeof(float));
    all_.emplace_back(all * sizeof(float));
  }
  for (std::size_t replica = 0; replica < kept_.size(); ++replica) keep_weights(replica);
}

/// Those that share a parameter are the group of its gather; a dealt one is kept by one of all replicas.
void ShardedReplicas::number_parts() {
  std::vector<Rank> numbers(communication_.replicas, 0);
  if (!updated_by_.empty()) std::iota(numbers.begin(), numbers.end(), Rank{0});
  shard_ranks_.assign(shard_.size(), 1);
  part_.assign(shard_.size(), numbers);
  for (std::size_t number = 0; number < gathers_.size(); ++number) {
    const std::vector<std::vector<Rank>>& groups = communication_.gathers[number].groups;
    for (const std::vector<Rank>& group : groups) {
      for (Rank part = 0; part < group.size(); ++part) numbers[group[part]] = part;
    }
    for (const std::uint32_t parameter : gathers_[number].parameters) {
      shard_ranks_[slot_of_[parameter]] = static_cast<Rank>(groups.front().size());
      part_[slot_of_[parameter]] = numbers;
    }
  }
}

Rank ShardedReplicas::first_keeper(std::size_t slot, Rank replica) const {
  Rank first = held_.first_holder(slot, replica);
  while (held_.first_holder(slot, first) != held_.first_holder(slot, replica) ||
         part_[slot][first] != part_[slot][replica]) {
    ++first;
  }
  return first;
}

ShardedReplicas::Part ShardedReplicas::part_of(std::size_t slot, Rank part) const {
  const std::uint64_t all = slots()[slot].elements;
  if (!updated_by_.empty()) return {.elements = updated_by_[slot] == part ? all : 0};
  if (shard_[slot] == 0) return {.elements = all};
  const std::uint64_t first = std::min(part * shard_[slot], all);
  return {.first = first, .elements = std::min(shard_[slot], all - first)};
}

ShardedReplicas::Kept ShardedReplicas::make_kept(Rank replica, const device::OptimizerSettings& optimizer) const {
  std::vector<Part> parts(owned_);
  std::vector<device::ParameterSlot> own;
  std::uint64_t elements = 0;
  for (const bool shared : {false, true}) {
    for (std::size_t slot = 0; slot < owned_; ++slot) {
      if (all_keep(slot) == shared) continue;
      parts[slot] = part_of(slot, part_[slot][replica]);
      parts[slot].offset = elements;
      elements += parts[slot].elements;
      if (parts[slot].elements == 0) continue;
      own.push_back(slots()[slot]);
      own.back().offset = parts[slot].offset;
      own.back().elements = parts[slot].elements;
    }
  }
  return {.parts = std::move(parts),
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
    for (Rank part = 0; part < reduction.reduction.groups.front().size(); ++part) {
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

// ---- Of reduced gradients

std::span<const float> ShardedReplicas::own_gradients(Rank replica) const {
  return kept_[replica].gradients.floats().first(kept_[replica].elements);
}

void ShardedReplicas::finish_gradients(device::WorkerPool& pool) {
  std::vector<bool> reduced(owned_, false);
  for (const SegmentReduction& reduction : communication_.reductions) {
    for (std::uint32_t slot = reduction.segment.first; slot <= reduction.segment.last; ++slot) reduced[slot] = true;
  }
  pool.for_each(kept_.size(), [&](std::size_t replica, unsigned) {
    for (std::size_t slot = 0; slot < owned_; ++slot) {
      if (reduced[slot]) continue;
      const Part& part = kept_[replica].parts[slot];
      std::ranges::copy(slots()[slot].in(gradients_of(replica)).subspan(part.first, part.elements),
                        kept_[replica].gradients.floats().subspan(part.offset).begin());
    }
  });
}

void ShardedReplicas::scale_gradients(device::WorkerPool& pool, std::span<const float> factors) {
  pool.for_each(kept_.size(), [&](std::size_t replica, unsigned) {
    Kept& kept = kept_[replica];
    for (std::size_t slot = 0; slot < owned_; ++slot) {
      const Part& part = kept.parts[slot];
      for (float& value : kept.gradients.floats().subspan(part.offset, part.elements)) value *= factors[slot];
    }
  });
}

/// What several replicas keep counts once.
double ShardedReplicas::norm(device::WorkerPool& pool, double scale) const {
  double sum = 0;
  for (std::size_t slot = 0; slot < owned_; ++slot) {
    for (Rank replica = 0; replica < kept_.size(); ++replica) {
      if (first_keeper(slot, replica) != replica) continue;
      const Part& part = kept_[replica].parts[slot];
      sum = std::hypot(sum, device::norm(pool, own_gradients(replica).subspan(part.offset, part.elements), scale));
    }
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
  for (std::size_t slot = 0; slot < slots().size(); ++slot) {
    for (Rank replica = 0; replica < kept_.size(); ++replica) {
      const Rank keeper = slot < owned_ ? first_keeper(slot, replica) : replica;
      if (keeper != replica) {
        const Kept& own = kept_[replica];
        const Kept& other = kept_[keeper];
        const Part& part = own.parts[slot];
        const auto of = [&](const device::MemoryBlock& block, const Kept& kept) {
          return block.floats().subspan(kept.parts[slot].offset, part.elements);
        };
        check.compare(of(own.masters, own), of(other.masters, other));
        if (gradients) check.compare(of(own.gradients, own), of(other.gradients, other));
      }
      const Rank holder = held_.first_holder(slot, replica);
      if (holder == replica) continue;
      check.compare(slots()[slot].in(weights_of(holder).values()), slots()[slot].in(weights_of(replica).values()));
      if (gradients && !updated_by_.empty()) {
        check.compare(slots()[slot].in(gradients_of(holder)), slots()[slot].in(gradients_of(replica)));
      }
    }
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

void ShardedReplicas::read(std::size_t kind, std::size_t slot, std::span<const Rank> holders, std::span<float> stored) {
  for (const Rank replica : holders) {
    Kept& kept = kept_[replica];
    const Part& part = kept.parts[slot];
    std::ranges::copy(buffer_of(kept, kind).subspan(part.offset, part.elements), stored.subspan(part.first).begin());
  }
}

void ShardedReplicas::write(std::size_t kind, std::size_t slot, std::span<const Rank> holders,
                            std::span<const float> stored) {
  for (const Rank replica : holders) {
    Kept& kept = kept_[replica];
    const Part& part = kept.parts[slot];
    std::ranges::copy(stored.subspan(part.first, part.elements), buffer_of(kept, kind).subspan(part.offset).begin());
    if (kind == 0) std::ranges::copy(stored, slots()[slot].in(weights_[replica].values()).begin());
  }
  changed_ = changed_ || kind == 0;
}

void ShardedReplicas::read_gradient(std::size_t slot, std::span<const Rank> holders, std::span<float> stored) const {
  for (const Rank replica : holders) {
    const Part& part = kept_[replica].parts[slot];
    std::ranges::copy(own_gradients(replica).subspan(part.offset, part.elements), stored.subspan(part.first).begin());
  }
}

void ShardedReplicas::restore_steps(std::uint64_t steps) {
  for (Kept& kept : kept_) kept.optimizer.restore_steps(steps);
}

}  // namespace hcclsim::hccl
