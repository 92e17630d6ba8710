#include "hccl/training/numerics/replicas.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace hcclsim::hccl {
namespace {

constexpr std::size_t block = std::size_t{1} << 16U;  // elements that one worker compares at a time

}  // namespace

Replicas::Replicas(const device::Computation& computation, const device::OptimizerSettings& optimizer, Rank ranks)
    : elements_(computation.elements()) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    gradient_of_.push_back(buffers_.emplace_back(elements_ * sizeof(float)).floats().data());
  }
  variants_.push_back({device::Weights(computation), device::OptimizerState(optimizer, computation.parameters()), {}});
  variant_of_.assign(ranks, &variants_.front());
  for (Rank rank = 0; rank < ranks; ++rank) variants_.front().members.push_back(rank);
}

Bytes Replicas::bytes(const device::Computation& computation, const device::OptimizerSettings& optimizer, Rank ranks) {
  return computation.weights_bytes() + device::OptimizerState::bytes(optimizer, computation.elements()) +
         ranks * computation.elements() * sizeof(float);
}

void Replicas::split(device::WorkerPool& pool) {
  std::list<Variant> forks;
  for (Variant& variant : variants_) {
    std::vector<std::vector<Rank>> groups;  // of members with the same gradients
    for (const Rank member : variant.members) {
      const auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Rank>& ranks) {
        return same_gradients(pool, ranks.front(), member);
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

bool Replicas::same_gradients(device::WorkerPool& pool, Rank one, Rank other) const {
  std::atomic<bool> same = true;
  pool.for_each(device::block_count(elements_, block), [&](std::size_t number, unsigned) {
    const std::uint64_t first = number * block;
    const std::uint64_t count = std::min<std::uint64_t>(block, elements_ - first);
    if (same && std::memcmp(gradient_of_[one] + first, gradient_of_[other] + first, count * sizeof(float)) != 0) {
      same = false;
    }
  });
  return same;
}

}  // namespace hcclsim::hccl
