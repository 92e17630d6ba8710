#include "hccl/collective/algorithm/nhr.hpp"

#include <algorithm>

#include "hccl/collective/algorithm/steps.hpp"

namespace hcclsim::hccl {
namespace {

/// Slices that a position passes on in step k.
std::uint32_t slices_in_step(Rank size, std::int32_t k) { return (size - 1 + (Rank{1} << k)) >> (k + 1); }

/// Those slices, 2^(k+1) apart, of which the last is x + last.
std::vector<Cut> slices(const Builder& builder, const Level& level, std::int32_t k, std::int32_t last) {
  const std::uint32_t count = slices_in_step(builder.size(level.group), k);
  const std::int32_t first = last - (static_cast<std::int32_t>(count) - 1) * (2 << k);
  return builder.share(level, {first, 1, 0, 0}, count, count == 1 ? 1 : 2U << k);
}

}  // namespace

void nhr_reduce_scatter_stages(Builder& builder, const Level& level) {
  const Rank size = builder.size(level.group);
  std::vector<Loop> loops;
  for (std::int32_t k = 0; k < steps_to_all(size); ++k) {
    const std::int32_t distance = 1 << k;
    loops.push_back(shift_and_reduce(builder, level, -distance, slices(builder, level, k, -distance),
                                     slices(builder, level, k, 0)));
  }
  add_loops(builder, level, "NHR reduce-scatter", std::move(loops));
}

void nhr_all_gather_stages(Builder& builder, const Level& level) {
  const Rank size = builder.size(level.group);
  std::vector<Loop> loops;
  for (std::int32_t k = steps_to_all(size) - 1; k >= 0; --k) {
    loops.push_back(shift(builder, level, 1 << k, slices(builder, level, k, 0)));
  }
  add_loops(builder, level, "NHR all-gather", std::move(loops));
}

void nhr_scatter_stages(Builder& builder, const Level& level, Rank root) {
  const Rank size = builder.size(level.group);
  std::vector<Rank> order;
  for (Rank v = 0; v < size; ++v) order.push_back((root + size - v) % size);
  std::vector<std::vector<TreeWrite>> stages;
  for (std::int32_t k = 0; k < steps_to_all(size); ++k) {
    const Rank distance = Rank{1} << k;
    const Rank senders = std::min(distance, size - distance);
    // The last senders have one slice less to pass on.
    const std::uint32_t most = slices_in_step(size, k);
    const Rank with_most = std::min(senders, size + distance - most * 2 * distance);
    std::vector<TreeWrite> writes{{0, with_most, 1, distance, most, most == 1 ? 1 : 2 * distance}};
    if (with_most < senders) {
      writes.push_back({with_most, senders - with_most, 1, distance, most - 1, most == 2 ? 1 : 2 * distance});
    }
    stages.push_back(std::move(writes));
  }
  add_scatter(builder, level, "NHR scatter", order, stages);
}

void nhr_broadcast_stages(Builder& builder, const Level& level, Rank root) {
  nhr_scatter_stages(builder, level, root);
  nhr_all_gather_stages(builder, level);
}

}  // namespace hcclsim::hccl
