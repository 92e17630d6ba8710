#include "hccl/collective/algorithm/rooted/rooted.hpp"

#include <utility>

namespace hcclsim::hccl {
namespace {

/// Positions first … last−1 of a group as a group of their own.
std::uint16_t part_of(Builder& builder, std::uint16_t whole, Rank first, Rank last) {
  const Group& group = builder.group(whole);
  std::vector<Rank> order;
  for (Rank position = first; position < last; ++position) order.push_back(group.place_of(position));
  return builder.add_part(whole, std::move(order));
}

}  // namespace

Group rooted_at(Rank root, Rank span, Rank stride) {
  if (root == 0) return Group::block(span, stride);
  std::vector<Rank> order(span);
  for (Rank position = 0; position < span; ++position) order[position] = (root + position) % span;
  return Group::ordered(span, std::move(order), stride);
}

std::uint16_t root_of(Builder& builder, std::uint16_t group) { return part_of(builder, group, 0, 1); }

std::uint16_t others_of(Builder& builder, std::uint16_t group) {
  return part_of(builder, group, 1, builder.size(group));
}

}  // namespace hcclsim::hccl
