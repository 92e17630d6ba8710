#include "tests/hccl/parallel/layout/held_tensor.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

namespace hcclsim::test {
namespace {

using Index = std::vector<std::uint32_t>;

std::size_t place(const models::Shape& shape, const Index& index) {
  std::size_t place = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) place = place * shape.size(axis) + index[axis];
  return place;
}

Index index_of(const models::Shape& shape, std::size_t place) {
  Index index(shape.rank());
  for (std::size_t axis = shape.rank(); axis-- > 0; place /= shape.size(axis)) {
    index[axis] = static_cast<std::uint32_t>(place % shape.size(axis));
  }
  return index;
}

HeldTensor generate(const models::Shape& shape, const std::function<std::int64_t(Index)>& value) {
  HeldTensor tensor{shape, std::vector<std::int64_t>(shape.elements())};
  for (std::size_t at = 0; at < tensor.values.size(); ++at) tensor.values[at] = value(index_of(shape, at));
  return tensor;
}

std::int64_t at(const HeldTensor& tensor, const Index& index) { return tensor.values[place(tensor.shape, index)]; }

/// What device `own` of a group has after a step, from what all of it had.
HeldTensor result(const hccl::RedistributionStep& step, const std::vector<HeldTensor>& group, std::uint32_t own) {
  const models::Shape& before = step.before;
  const models::Shape& after = step.after;
  switch (step.kind) {
    case hccl::RedistributionKind::all_gather:
      return generate(after, [&](Index index) {
        const std::uint32_t part = index[step.dim] / before.size(step.dim);
        index[step.dim] %= before.size(step.dim);
        return at(group[part], index);
      });
    case hccl::RedistributionKind::slice:
      return generate(after, [&](Index index) {
        index[step.dim] += own * after.size(step.dim);
        return at(group[own], index);
      });
    case hccl::RedistributionKind::pad:
      return generate(after, [&](Index index) {
        const std::uint32_t part = index[step.dim] / before.size(step.dim);
        index[step.dim] %= before.size(step.dim);
        return part == own ? at(group[own], index) : 0;
      });
    case hccl::RedistributionKind::reduce_scatter:
      return generate(after, [&](Index index) {
        index[step.dim] += own * after.size(step.dim);
        std::int64_t sum = 0;
        for (const HeldTensor& tensor : group) sum += at(tensor, index);
        return sum;
      });
    case hccl::RedistributionKind::all_to_all: {
      // A part as it travels: cut, not yet joined.
      models::Shape part = before;
      part.resize(step.split_dim, before.size(step.split_dim) / step.ranks());
      return generate(after, [&](Index index) {
        const std::uint32_t sender = index[step.concat_dim] / part.size(step.concat_dim);
        index[step.concat_dim] %= part.size(step.concat_dim);
        index[step.split_dim] += own * part.size(step.split_dim);
        return at(group[sender], index);
      });
    }
    case hccl::RedistributionKind::reshape:
      break;
  }
  return {after, group[own].values};
}

}  // namespace

HeldTensors cut(const hccl::TensorLayout& layout) {
  HeldTensors held;
  for (Rank device = 0; device < layout.devices.devices(); ++device) {
    held.push_back(generate(layout.slice_shape(), [&](Index index) {
      const std::vector<std::uint32_t> begin = layout.offsets(device);
      for (std::size_t axis = 0; axis < index.size(); ++axis) index[axis] += begin[axis];
      return static_cast<std::int64_t>(place(layout.shape, index));
    }));
  }
  return held;
}

HeldTensors carry_out(const std::vector<hccl::RedistributionStep>& steps, HeldTensors held) {
  for (const hccl::RedistributionStep& step : steps) {
    for (const HeldTensor& tensor : held) EXPECT_EQ(tensor.shape, step.before);
    HeldTensors next = held;
    const bool alone = step.kind == hccl::RedistributionKind::reshape;
    for (Rank device = 0; alone && device < held.size(); ++device) next[device] = result(step, {held[device]}, 0);
    const std::vector<std::vector<Rank>> groups = alone ? std::vector<std::vector<Rank>>{} : step.groups();
    for (const std::vector<Rank>& group : groups) {
      HeldTensors members;
      for (const Rank device : group) members.push_back(held[device]);
      for (std::uint32_t own = 0; own < group.size(); ++own) next[group[own]] = result(step, members, own);
    }
    held = std::move(next);
  }
  return held;
}

}  // namespace hcclsim::test
