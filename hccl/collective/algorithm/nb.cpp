#include "hccl/collective/algorithm/nb.hpp"

#include <algorithm>

#include "hccl/collective/algorithm/steps.hpp"

namespace hcclsim::hccl {

std::vector<Loop> nb_reduce_scatter_loops(Builder& builder, const Level& level) {
  const Rank size = builder.size(level.group);
  std::vector<Loop> loops;
  for (std::int32_t k = 0; k < steps_to_all(size); ++k) {
    const std::int32_t distance = 1 << k;
    const std::uint32_t count = (size - 1 + (Rank{1} << k)) >> (k + 1);
    const auto slices = [&](std::int32_t first) {
      return builder.share(level, {first, 1, 0, 0}, count, count == 1 ? 1 : 2U << k);
    };
    loops.push_back(shift_and_reduce(builder, level, distance, slices(distance), slices(0)));
  }
  return loops;
}

std::vector<Loop> nb_all_gather_loops(Builder& builder, const Level& level) {
  const Rank size = builder.size(level.group);
  std::vector<Loop> loops;
  for (std::int32_t k = 0; k < steps_to_all(size); ++k) {
    const std::int32_t distance = 1 << k;
    const auto count = std::min<std::int32_t>(distance, static_cast<std::int32_t>(size) - distance);
    loops.push_back(
        shift(builder, level, distance, builder.share(level, {1 - count, 1, 0, 0}, static_cast<std::uint32_t>(count))));
  }
  return loops;
}

void nb_reduce_scatter_stages(Builder& builder, const Level& level) {
  add_loops(builder, level, "NB reduce-scatter", nb_reduce_scatter_loops(builder, level));
}

void nb_all_gather_stages(Builder& builder, const Level& level) {
  add_loops(builder, level, "NB all-gather", nb_all_gather_loops(builder, level));
}

void nb_scatter_stages(Builder& builder, const Level& level, Rank root) {
  const Rank size = builder.size(level.group);
  std::vector<Rank> order;
  for (Rank v = 0; v < size; ++v) order.push_back((root + v) % size);
  std::vector<std::vector<TreeWrite>> stages;
  for (std::int32_t k = steps_to_all(size) - 1; k >= 0; --k) {
    const Rank distance = Rank{1} << k;
    const Rank step = 2 * distance;
    std::vector<TreeWrite> writes;
    if (size / step > 0) writes.push_back({0, size / step, step, distance, distance, 1});
    // The last window may end early.
    const Rank last = size / step * step;
    if (size - last > distance) writes.push_back({last, 1, 1, distance, size - last - distance, 1});
    stages.push_back(std::move(writes));
  }
  add_scatter(builder, level, "NB scatter", order, stages);
}

void nb_broadcast_stages(Builder& builder, const Level& level, Rank root) {
  nb_scatter_stages(builder, level, root);
  nb_all_gather_stages(builder, level);
}

}  // namespace hcclsim::hccl
