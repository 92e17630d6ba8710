#include "hccl/training/numerics/replicas/replicas.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "device/numerics/loops/gradient_checks.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::size_t block = std::size_t{1} << 16U;  // elements that one worker compares at a time

std::uint64_t elements_of(std::span<const device::ParameterSlot> slots) {
  return slots.empty() ? 0 : slots.back().offset + slots.back().elements;
}

}  // namespace

Replicas::Replicas(const device::Computation& computation, std::size_t owned, const ReplicaCommunication& communication,
                   const ParameterParts& parts, const device::OptimizerSettings& optimizer, device::Overflow overflow,
                   std::uint64_t seed, device::WorkerPool& pool)
    : computation_(computation),
      parts_(parts),
      owned_(owned),
      elements_(computation.elements()),
      owned_elements_(elements_of(computation.parameters().first(owned))),
      exchange_(computation.parameters(), communication.reductions, overflow) {
  for (const SegmentReduction& reduction : communication.reductions) {
    segments_.push_back(computation_.parameters().subspan(reduction.segment.first, reduction.segment.tensors()));
  }
  for (Rank replica = 0; replica < communication.replicas; ++replica) {
    gradient_of_.push_back(buffers_.emplace_back(elements_ * sizeof(float)).floats().data());
  }
  for (Rank replica = 0; replica < communication.replicas; ++replica) {
    const auto alike = std::ranges::find_if(
        variants_, [&](const Variant& variant) { return parts.alike(variant.members.front(), replica); });
    if (alike != variants_.end()) {
      alike->members.push_back(replica);
      variant_of_.push_back(&*alike);
      continue;
    }
    variants_.push_back({device::Weights(computation),
                         device::OptimizerState(optimizer, computation.parameters().first(owned)),
                         {replica}});
    variant_of_.push_back(&variants_.back());
    parts.initialise(computation, seed, replica, pool, variants_.back().weights);
  }
  kinds_of_parts_ = variants_.size();
}

void Replicas::compress(const CompressionSettings& settings, const ReplicaCommunication& communication,
                        std::vector<std::vector<BucketTensor>> tensors, device::Overflow overflow) {
  compressed_ =
      std::make_unique<CompressedReduction>(computation_, settings, communication, std::move(tensors), overflow);
}

Bytes Replicas::bytes(const device::Computation& computation, const ReplicaCommunication& communication,
                      const ParameterParts& parts, const device::OptimizerSettings& optimizer) {
  const Bytes each = computation.weights_bytes() + device::OptimizerState::bytes(optimizer, computation.elements());
  return parts.kinds() * each + communication.replicas * computation.elements() * sizeof(float) +
         GradientExchange::wire_bytes(computation.parameters(), communication);
}

void Replicas::start_apart(device::WorkerPool& pool, std::span<const std::uint64_t> seeds) {
  Variant& first = variants_.front();
  for (Rank replica = 0; replica < variant_of_.size(); ++replica) {
    if (replica > 0) {
      variants_.push_back({first.weights, first.optimizer, {replica}});
      variant_of_[replica] = &variants_.back();
    }
    parts_.initialise(computation_, seeds[replica], replica, pool, variant_of_[replica]->weights);
  }
  first.members = {0};
}

/// The buffers of gradients, which are not needed yet, are those of the broadcast.
void Replicas::start_together(device::WorkerPool& pool, const Schedule& broadcast) {
  if (broadcast.elements != elements_) {
    internal_error("a broadcast of {} weights, of which there are {}", broadcast.elements, elements_);
  }
  std::vector<std::byte*> buffers;
  for (Rank replica = 0; replica < variant_of_.size(); ++replica) {
    std::ranges::copy(variant_of_[replica]->weights.values(), gradient_of_[replica]);
    buffers.push_back(reinterpret_cast<std::byte*>(gradient_of_[replica]));
  }
  execute(DataFlow(broadcast), buffers, device::Overflow::infinity, pool);
  Variant& first = variants_.front();
  for (auto variant = variants_.begin(); variant != variants_.end();) {
    const std::span<const float> received(gradient_of_[variant->members.front()], elements_);
    std::ranges::copy(received, variant->weights.values().begin());
    if (&*variant == &first || std::memcmp(received.data(), gradient_of_[0], received.size_bytes()) != 0) {
      ++variant;
      continue;
    }
    for (const Rank member : variant->members) variant_of_[member] = &first;
    first.members.insert(first.members.end(), variant->members.begin(), variant->members.end());
    variant = variants_.erase(variant);
  }
  std::ranges::sort(first.members);
  for (float* const gradients : gradient_of_) std::fill_n(gradients, elements_, 0.0F);
  changed_ = true;
  prepare(pool);
}

void Replicas::gather(device::WorkerPool& /*pool*/, std::uint32_t number) {
  internal_error("gather {} of weights that every replica has", number);
}

void Replicas::broadcast(device::WorkerPool& /*pool*/, std::uint32_t number) {
  internal_error("broadcast {} of weights that every replica updates", number);
}

void Replicas::borrow(std::size_t slot, const ParameterStore& owner, const device::ParameterSlot& place) {
  const device::ParameterSlot& own = computation_.parameters()[slot];
  for (Variant& variant : variants_) {
    const std::span<const float> values = place.in(owner.weights_of(variant.members.front()).values());
    std::ranges::copy(values, own.in(variant.weights.values()).begin());
  }
  changed_ = true;
}

void Replicas::prepare(device::WorkerPool& pool) {
  if (!changed_) return;
  for (Variant& variant : variants_) variant.weights.prepare(pool);
  changed_ = false;
}

bool Replicas::reduce(device::WorkerPool& pool, std::span<const std::uint32_t> segments, float scale, CheckedPart part,
                      ReductionCheck& check) {
  if (compressed_ != nullptr) {
    const CompressedReduction::Outcome outcome = compressed_->run(pool, segments, gradient_of_);
    if (!outcome.identical) split(pool, segments);
    return outcome.overflow;
  }
  const GradientExchange::Outcome outcome = exchange_.run(pool, segments, gradient_of_, scale, part, check);
  if (!outcome.identical) split(pool, segments);
  return outcome.overflow;
}

void Replicas::scale_gradients(device::WorkerPool& pool, std::span<const float> factors) {
  pool.for_each(gradient_of_.size(), [&](std::size_t replica, unsigned) {
    for (std::size_t slot = 0; slot < owned_; ++slot) {
      const std::span<float> gradient = computation_.parameters()[slot].in(gradients_of(static_cast<Rank>(replica)));
      for (float& value : gradient) value *= factors[slot];
    }
  });
}

double Replicas::norm(device::WorkerPool& pool, double scale) const {
  if (!parts_.cut()) return device::norm(pool, owned_gradients(0), scale);
  double sum = 0;
  for (std::size_t slot = 0; slot < owned_; ++slot) {
    for (const std::vector<Rank>& holders : parts_.holders(slot)) {
      const std::span<const float> gradient = computation_.parameters()[slot].in(gradients_of(holders.front()));
      sum = std::hypot(sum, device::norm(pool, gradient, scale));
    }
  }
  return sum;
}

/// Looked at only where that would have a consequence.
bool Replicas::gradients_finite(device::WorkerPool& pool) const {
  return std::ranges::all_of(variants_, [&](const Variant& variant) {
    return device::all_finite(pool, owned_gradients(variant.members.front()));
  });
}

void Replicas::update(device::WorkerPool& pool, double learning_rate, float scale) {
  for (Variant& variant : variants_) {
    variant.optimizer.step(pool, owned(variant.weights.values()), owned_gradients(variant.members.front()), scale,
                           learning_rate);
    variant.weights.prepare(pool);
  }
}

bool Replicas::weights_finite(device::WorkerPool& pool) {
  return std::ranges::all_of(
      variants_, [&](Variant& variant) { return device::all_finite(pool, owned(variant.weights.values())); });
}

void Replicas::compare_replicas(ReplicaCheck& check, bool gradients) const {
  const auto compare = [&](std::size_t first, std::size_t slots, Rank one, Rank other) {
    if (slots == 0) return;
    const device::ParameterSlot& last = computation_.parameters()[first + slots - 1];
    const std::uint64_t offset = computation_.parameters()[first].offset;
    const std::uint64_t elements = last.offset + last.elements - offset;
    if (variant_of_[one] != variant_of_[other] && variant_of_[other]->members.front() == other) {
      check.compare(weights_of(one).values().subspan(offset, elements),
                    weights_of(other).values().subspan(offset, elements));
    }
    if (gradients) {
      check.compare(std::span<const float>(gradients_of(one)).subspan(offset, elements),
                    std::span<const float>(gradients_of(other)).subspan(offset, elements));
    }
  };
  if (!parts_.cut()) {
    for (Rank replica = 1; replica < gradient_of_.size(); ++replica) compare(0, owned_, 0, replica);
    return;
  }
  for (std::size_t slot = 0; slot < owned_; ++slot) {
    for (Rank replica = 0; replica < gradient_of_.size(); ++replica) {
      const Rank first = parts_.first_holder(slot, replica);
      if (first != replica) compare(slot, 1, first, replica);
    }
  }
}

std::span<float> Replicas::buffer_of(Variant& variant, std::size_t kind) {
  return kind == 0 ? variant.weights.values() : variant.optimizer.tensors()[kind - 1];
}

void Replicas::read(std::size_t kind, std::size_t slot, std::span<const Rank> holders, std::span<float> stored) {
  Variant& variant = *variant_of_[holders.front()];
  std::ranges::copy(computation_.parameters()[slot].in(buffer_of(variant, kind)), stored.begin());
}

void Replicas::write(std::size_t kind, std::size_t slot, std::span<const Rank> holders, std::span<const float> stored) {
  for (Variant& variant : variants_) {
    if (std::ranges::find(holders, variant.members.front()) == holders.end()) continue;
    std::ranges::copy(stored, computation_.parameters()[slot].in(buffer_of(variant, kind)).begin());
  }
  changed_ = true;
}

void Replicas::read_gradient(std::size_t slot, std::span<const Rank> holders, std::span<float> stored) const {
  std::ranges::copy(computation_.parameters()[slot].in(gradients_of(holders.front())), stored.begin());
}

void Replicas::split(device::WorkerPool& pool, std::span<const std::uint32_t> segments) {
  std::list<Variant> forks;
  for (Variant& variant : variants_) {
    std::vector<std::vector<Rank>> groups;  // of members with the same gradients
    for (const Rank member : variant.members) {
      const auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Rank>& ranks) {
        return std::ranges::all_of(
            segments, [&](std::uint32_t segment) { return same_gradients(pool, segment, ranks.front(), member); });
      });
      if (group == groups.end()) {
        groups.push_back({member});
      } else {
        group->push_back(member);
      }
    }
    for (std::size_t group = 1; group < groups.size(); ++group) {
      forks.push_back({variant.weights, variant.optimizer, groups[group]});
      for (const Rank member : groups[group]) variant_of_[member] = &forks.back();
    }
    variant.members = std::move(groups.front());
  }
  variants_.splice(variants_.end(), forks);
  variants_.sort([](const Variant& a, const Variant& b) { return a.members.front() < b.members.front(); });
}

bool Replicas::same_gradients(device::WorkerPool& pool, std::uint32_t segment, Rank one, Rank other) const {
  const std::uint64_t offset = segments_[segment].front().offset;
  const std::uint64_t elements = elements_of(segments_[segment]) - offset;
  std::atomic<bool> same = true;
  pool.for_each(device::block_count(elements, block), [&](std::size_t number, unsigned) {
    const std::uint64_t first = number * block;
    const std::uint64_t bytes = std::min<std::uint64_t>(block, elements - first) * sizeof(float);
    if (!same) return;
    if (std::memcmp(gradient_of_[one] + offset + first, gradient_of_[other] + offset + first, bytes) != 0) same = false;
  });
  return same;
}

}  // namespace hcclsim::hccl
