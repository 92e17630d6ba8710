#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "hccl/training/numerics/replicas/sharded_replicas.hpp"

// Weights that replicas send each other: gathered from the parts of all, or from the one that has updated them.
namespace hcclsim::hccl {
namespace {

/// Bytes `first` … of numbers: all of them, or a half of each.
void put_bytes(DataType type, std::size_t first, std::span<const float> values, std::byte* out) {
  const std::size_t size = size_of(type);
  if (size == sizeof(float)) {
    std::memcpy(out, values.data(), values.size_bytes());
    return;
  }
  const auto* const in = reinterpret_cast<const std::byte*>(values.data());
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(out + i * size, in + i * sizeof(float) + first, 2);
}

void take_bytes(DataType type, std::size_t first, const std::byte* in, std::span<float> values) {
  const std::size_t size = size_of(type);
  if (size == sizeof(float)) {
    std::memcpy(values.data(), in, values.size_bytes());
    return;
  }
  auto* const out = reinterpret_cast<std::byte*>(values.data());
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(out + i * sizeof(float) + first, in + i * size, 2);
}

}  // namespace

void ShardedReplicas::start_apart(device::WorkerPool& pool, std::span<const std::uint64_t> seeds) {
  const device::Weights common(weights_.front());
  for (std::size_t replica = 0; replica < kept_.size(); ++replica) {
    held_.initialise(computation_, seeds[replica], static_cast<Rank>(replica), pool, weights_[replica]);
    for (std::size_t slot = 0; slot < shard_.size(); ++slot) {
      if (shard_[slot] == 0) continue;
      std::ranges::copy(slots()[slot].in(common.values()), slots()[slot].in(weights_[replica].values()).begin());
    }
    keep_weights(replica);
  }
  changed_ = true;
  prepare(pool);
}

/// Of parameters that are not in parts, one behind the other in the buffers of gradients, which are not needed yet.
void ShardedReplicas::start_together(device::WorkerPool& pool, const Schedule& broadcast) {
  std::vector<std::byte*> buffers;
  std::uint64_t elements = 0;
  const auto each = [&](std::size_t replica, const auto& move) {
    float* place = gradient_of_[replica];
    for (std::size_t slot = 0; slot < shard_.size(); ++slot) {
      if (shard_[slot] > 0) continue;
      move(slots()[slot].in(weights_[replica].values()), place);
      place += slots()[slot].elements;
    }
    elements = place - gradient_of_[replica];
  };
  for (std::size_t replica = 0; replica < kept_.size(); ++replica) {
    each(replica, [](std::span<const float> values, float* place) { std::ranges::copy(values, place); });
    buffers.push_back(reinterpret_cast<std::byte*>(gradient_of_[replica]));
  }
  if (broadcast.elements != elements) {
    internal_error("a broadcast of {} weights, of which there are {}", broadcast.elements, elements);
  }
  execute(DataFlow(broadcast), buffers, overflow_, pool);
  for (std::size_t replica = 0; replica < kept_.size(); ++replica) {
    each(replica,
         [](std::span<float> values, const float* place) { std::copy_n(place, values.size(), values.begin()); });
    keep_weights(replica);
    std::ranges::fill(gradients_of(static_cast<Rank>(replica)), 0.0F);
  }
  changed_ = true;
  prepare(pool);
}

/// The replica's own parts of the weights that it computes with.
void ShardedReplicas::keep_weights(std::size_t replica) {
  Kept& kept = kept_[replica];
  for (std::size_t slot = 0; slot < owned_; ++slot) {
    const Part& part = kept.parts[slot];
    const std::span<const float> whole = slots()[slot].in(std::as_const(weights_[replica]).values());
    std::ranges::copy(whole.subspan(part.first, part.elements), kept.masters.floats().subspan(part.offset).begin());
  }
}

std::uint64_t ShardedReplicas::gathered_elements(const WeightGather& gather) const {
  std::uint64_t elements = 0;
  for (const std::uint32_t parameter : gather.parameters) elements += shard_[slot_of_[parameter]];
  return elements;
}

void ShardedReplicas::gather(device::WorkerPool& pool, std::uint32_t number) {
  const std::vector<std::uint32_t>& parameters = gathers_[number].parameters;
  const ReplicaCollective& collective = communication_.gathers[number];
  const DataType type = collective.schedules.front()->type;
  const std::uint64_t block = gathered_elements(gathers_[number]);
  for (std::size_t first = 0; first < sizeof(float); first += size_of(type)) {
    pool.for_each(kept_.size(), [&](std::size_t replica, unsigned) {
      Kept& kept = kept_[replica];
      std::uint64_t offset = 0;
      for (const std::uint32_t parameter : parameters) {
        const Part& part = kept.parts[slot_of_[parameter]];
        put_bytes(type, first, kept.masters.floats().subspan(part.offset, part.elements),
                  one_[replica].data() + offset * size_of(type));
        offset += shard_[slot_of_[parameter]];
      }
    });
    run(pool, collective, one_, all_);
    pool.for_each(kept_.size(), [&](std::size_t replica, unsigned) {
      for (Rank from = 0; from < collective.groups.front().size(); ++from) {
        std::uint64_t offset = from * block;
        for (const std::uint32_t parameter : parameters) {
          const std::size_t slot = slot_of_[parameter];
          const Part part = part_of(slot, from);
          take_bytes(type, first, all_[replica].data() + offset * size_of(type),
                     slots()[slot].in(weights_[replica].values()).subspan(part.first, part.elements));
          offset += shard_[slot];
        }
      }
    });
  }
  changed_ = true;
}

std::vector<std::size_t> ShardedReplicas::slots_of_updater(Rank replica) const {
  std::vector<std::size_t> own;
  for (const std::size_t slot : slot_of_) {
    if (updated_by_[slot] == replica) own.push_back(slot);
  }
  return own;
}

void ShardedReplicas::broadcast(device::WorkerPool& pool, std::uint32_t number) {
  const ReplicaCollective& collective = communication_.broadcasts[number];
  const DataType type = collective.schedules.front()->type;
  const Kept& root = kept_[number];
  const std::vector<std::size_t> sent = slots_of_updater(number);
  for (std::size_t first = 0; first < sizeof(float); first += size_of(type)) {
    std::uint64_t offset = 0;
    for (const std::size_t slot : sent) {
      const Part& part = root.parts[slot];
      put_bytes(type, first, root.masters.floats().subspan(part.offset, part.elements),
                one_[number].data() + offset * size_of(type));
      offset += part.elements;
    }
    run(pool, collective, {}, one_);
    pool.for_each(kept_.size(), [&](std::size_t replica, unsigned) {
      const std::byte* from = one_[replica].data();
      for (const std::size_t slot : sent) {
        const std::span<float> whole = slots()[slot].in(weights_[replica].values());
        take_bytes(type, first, from, whole);
        from += whole.size() * size_of(type);
      }
    });
  }
  changed_ = true;
}

}  // namespace hcclsim::hccl
