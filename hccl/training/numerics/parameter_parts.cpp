#include "hccl/training/numerics/parameter_parts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "models/initial_weights.hpp"

namespace hcclsim::hccl {
namespace {

/// Calls `use` with the places of a run of elements in the part and in the whole, and its length, for all runs of what
/// the device has.
template <typename Use>
void for_each_run(const TensorLayout& layout, Rank device, const Use& use) {
  const models::Shape part = layout.own_shape(device);
  const std::vector<std::uint32_t> first = layout.offsets(device);
  const std::size_t rank = part.rank();
  if (rank == 0) {
    use(0, 0, 1);
    return;
  }
  // Axes at the end that are not cut are one run.
  std::size_t inner = rank - 1;
  std::size_t length = part.size(inner);
  std::size_t distance = 1;  // of the elements of axis `inner` in the whole
  while (inner > 0 && part.size(inner) == layout.shape.size(inner)) {
    distance *= layout.shape.size(inner);
    length *= part.size(--inner);
  }
  std::vector<std::uint32_t> at(inner, 0);
  const std::size_t runs = part.elements() / length;
  for (std::size_t run = 0; run < runs; ++run) {
    std::size_t place = 0;
    for (std::size_t axis = 0; axis < inner; ++axis) {
      place = place * layout.shape.size(axis) + first[axis] + at[axis];
    }
    place = (place * layout.shape.size(inner) + first[inner]) * distance;
    use(run * length, place, length);
    for (std::size_t axis = inner; axis-- > 0;) {
      if (++at[axis] < part.size(axis)) break;
      at[axis] = 0;
    }
  }
}

}  // namespace

template <typename Element>
void take_part(const TensorLayout& layout, Rank device, std::span<const Element> whole, std::span<Element> part) {
  if (whole.size() != layout.shape.elements() || part.size() != layout.slice_shape().elements()) {
    internal_error("{} of {} elements for a layout {}", part.size(), whole.size(), to_string(layout));
  }
  for_each_run(layout, device, [&](std::size_t in_part, std::size_t in_whole, std::size_t length) {
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(in_whole), length,
                part.begin() + static_cast<std::ptrdiff_t>(in_part));
  });
  const std::size_t own = layout.own_shape(device).elements();
  std::ranges::fill(part.subspan(own), Element{0});
}

template <typename Element>
void put_part(const TensorLayout& layout, Rank device, std::span<const Element> part, std::span<Element> whole) {
  if (whole.size() != layout.shape.elements() || part.size() != layout.slice_shape().elements()) {
    internal_error("{} of {} elements for a layout {}", part.size(), whole.size(), to_string(layout));
  }
  for_each_run(layout, device, [&](std::size_t in_part, std::size_t in_whole, std::size_t length) {
    std::copy_n(part.begin() + static_cast<std::ptrdiff_t>(in_part), length,
                whole.begin() + static_cast<std::ptrdiff_t>(in_whole));
  });
}

template void take_part(const TensorLayout&, Rank, std::span<const float>, std::span<float>);
template void take_part(const TensorLayout&, Rank, std::span<const std::int32_t>, std::span<std::int32_t>);
template void put_part(const TensorLayout&, Rank, std::span<const float>, std::span<float>);

ParameterParts::ParameterParts(const models::Graph& network, const ShardedGraph& stage,
                               const device::Computation& computation, Rank replicas)
    : network_(network), replicas_(replicas) {
  std::vector<Rank> all(replicas);
  std::iota(all.begin(), all.end(), Rank{0});
  if (!stage.parameters.empty() && stage.devices != replicas) {
    internal_error("{}: operators are cut over {} devices, of which a stage has {}", network.title, stage.devices,
                   replicas);
  }
  for (const device::ParameterSlot& slot : computation.parameters()) {
    const std::uint32_t original = computation.graph().parameters[slot.parameter].original;
    originals_.push_back(original == models::no_original ? slot.parameter : original);
    elements_.push_back(network.parameters[originals_.back()].elements);
    if (!stage.parameters.empty()) layouts_.push_back(stage.parameters[slot.parameter]);
    holders_.push_back(stage.parameters.empty() ? std::vector<std::vector<Rank>>{all} : layouts_.back().replicas());
    std::vector<Rank>& first = first_holder_.emplace_back(replicas, 0);
    for (const std::vector<Rank>& group : holders_.back()) {
      for (const Rank replica : group) first[replica] = group.front();
    }
    const std::uint64_t part = cut() ? layouts_.back().slice_shape().elements() : elements_.back();
    const std::uint64_t whole = cut() ? layouts_.back().shape.elements() : elements_.back();
    if (part != slot.elements || whole != elements_.back()) {
      internal_error("{}: {} of {} elements is not the part of a device of {}", slot.name, slot.elements, network.title,
                     elements_.back());
    }
  }
}

bool ParameterParts::alike(Rank one, Rank other) const {
  return std::ranges::all_of(first_holder_, [&](const std::vector<Rank>& first) { return first[one] == first[other]; });
}

std::size_t ParameterParts::kinds() const {
  std::vector<Rank> different;
  for (Rank replica = 0; replica < replicas_; ++replica) {
    const bool seen = std::ranges::any_of(different, [&](Rank other) { return alike(other, replica); });
    if (!seen) different.push_back(replica);
  }
  return different.size();
}

std::uint64_t ParameterParts::whole_elements(std::size_t slot) const { return elements_[slot]; }

std::vector<float> ParameterParts::part_of(std::size_t slot, Rank replica, std::span<const float> whole) const {
  if (!cut()) return {whole.begin(), whole.end()};
  std::vector<float> part(layouts_[slot].slice_shape().elements());
  take_part<float>(layouts_[slot], replica, whole, part);
  return part;
}

void ParameterParts::put(std::size_t slot, Rank replica, std::span<const float> part, std::span<float> whole) const {
  if (cut()) {
    put_part<float>(layouts_[slot], replica, part, whole);
  } else {
    std::ranges::copy(part, whole.begin());
  }
}

void ParameterParts::initialise(const device::Computation& computation, std::uint64_t seed, Rank replica,
                                device::WorkerPool& pool, device::Weights& weights) const {
  pool.for_each(computation.parameters().size(), [&](std::size_t slot, unsigned) {
    std::vector<float> whole(elements_[slot]);
    models::initial_weights(network_, originals_[slot], seed, whole);
    computation.to_storage(slot, part_of(slot, replica, whole), computation.parameters()[slot].in(weights.values()));
  });
  weights.prepare(pool);
}

}  // namespace hcclsim::hccl
