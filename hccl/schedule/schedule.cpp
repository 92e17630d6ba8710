#include "hccl/schedule/schedule.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// Groups of less than this part of their span are searched: many of them would fill the memory.
constexpr Rank few_members = 8;

}  // namespace

std::string_view name_of(TaskKind kind) {
  static constexpr std::array<std::string_view, 8> names{"copy",         "reduce",      "write", "read",
                                                         "write-reduce", "read-reduce", "post",  "wait"};
  return names[static_cast<std::size_t>(kind)];
}

Group::Group(Rank span, Rank stride, std::vector<Rank> order) : span_(span), stride_(stride), order_(std::move(order)) {
  if (span_ == 0 || stride_ == 0) internal_error("a group needs a span and a stride of at least 1");
  if (order_.empty()) return;
  for (Rank i = 0; i < order_.size(); ++i) sorted_.emplace_back(order_[i], i);
  std::sort(sorted_.begin(), sorted_.end());
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    const Rank place = sorted_[i].first;
    if (place >= span_ || (i > 0 && sorted_[i - 1].first == place)) {
      internal_error("place {} of a group's order is outside its span {} or named twice", place, span_);
    }
  }
  if (sorted_.size() < span_ / few_members) return;
  position_.assign(span_, not_a_member);
  for (const auto& [place, position] : sorted_) position_[place] = position;
  sorted_ = {};
}

Rank Group::search(Rank place) const {
  const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair{place, Rank{0}});
  return found != sorted_.end() && found->first == place ? found->second : not_a_member;
}

Group Group::block(Rank span, Rank stride) { return {span, stride, {}}; }

Group Group::ordered(Rank span, std::vector<Rank> order, Rank stride) { return {span, stride, std::move(order)}; }

std::uint32_t Peer::position(const Place& place, Rank size) const {
  const std::int64_t number = value.at(place);
  if (kind == Kind::flip) return place.position ^ (std::uint32_t{1} << number);
  const std::int64_t target = (std::int64_t{place.position} + number) % size;
  return static_cast<std::uint32_t>(target < 0 ? target + size : target);
}

std::uint32_t Schedule::windows() const {
  if (window == 0) return 1;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>((largest_block() + window - 1) / window, 1));
}

Bytes Schedule::size(Buffer buffer, Rank owner) const {
  if (buffer == Buffer::scratch) return scratch;
  return buffer == Buffer::ccl ? ccl : Operation::size(buffer, owner);
}

}  // namespace hcclsim::hccl
