#include "hccl/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// Groups of less than this part of their span are searched: many of them would fill the memory.
constexpr Rank few_members = 8;

std::tuple<std::uint32_t, Rank, std::uint32_t> place_of(const TaskList& list) {
  return {list.window, list.rank, list.queue};
}

}  // namespace

std::string_view name_of(TaskKind kind) {
  static constexpr std::array<std::string_view, task_kinds> names{
      "copy", "reduce", "write", "read", "write-reduce", "read-reduce", "post", "wait", "local-post", "local-wait"};
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

TaskLists::TaskLists(std::vector<TaskList> lists) : lists_(std::move(lists)), order_(lists_.size()) {
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::pair(place_of(lists_[a]), a) < std::pair(place_of(lists_[b]), b);
  });
}

const TaskList* TaskLists::find(std::uint32_t window, Rank rank, std::uint32_t queue) const {
  const std::tuple place(window, rank, queue);
  const auto found =
      std::lower_bound(order_.begin(), order_.end(), place,
                       [this](std::uint32_t index, const auto& wanted) { return place_of(lists_[index]) < wanted; });
  return found != order_.end() && place_of(lists_[*found]) == place ? &lists_[*found] : nullptr;
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
