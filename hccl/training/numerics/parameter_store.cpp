#include "hccl/training/numerics/parameter_store.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.hpp"

namespace hcclsim::hccl {

void ReplicaCheck::compare(std::span<const float> one, std::span<const float> other) {
  if (std::memcmp(one.data(), other.data(), one.size_bytes()) == 0) return;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(one[i]) ^ std::bit_cast<std::uint32_t>(other[i]);
    if (bits == 0) continue;
    differing_bits += static_cast<unsigned>(std::popcount(bits));
    largest_difference =
        std::max(largest_difference, std::abs(static_cast<double>(one[i]) - static_cast<double>(other[i])));
  }
}

bool ParameterStore::mirror(device::WorkerPool& /*pool*/, std::span<const std::uint32_t> /*segments*/, float /*scale*/,
                            CheckedPart /*part*/, ReductionCheck& /*check*/) {
  internal_error("replicas that keep all of every gradient have no parts of them");
}

}  // namespace hcclsim::hccl
