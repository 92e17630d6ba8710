#include "sim/event_queue.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace hcclsim::sim {
namespace {

/// Equal for equal dates: adding 0 turns −0 into 0.
std::uint64_t key_of(Seconds date) { return std::bit_cast<std::uint64_t>(date + 0.0); }

std::uint64_t key_of(EventOrder order) { return std::uint64_t{order.rank} << 32 | order.stream; }

}  // namespace

EventId EventQueue::add(Seconds date, const QueuedEvent& event) {
  const Bucket bucket = bucket_at(date);
  Dated& dated = buckets_[bucket];
  ++dated.live;
  dated.events.push_back(event);
  return {bucket, static_cast<std::uint32_t>(dated.events.size() - 1)};
}

void EventQueue::cancel(EventId id) {
  Dated& dated = buckets_[id.bucket];
  dated.events[id.index].handler = nullptr;
  if (--dated.live > 0 || dated.heap_position == not_in_heap) return;
  remove_from_heap(id.bucket);
  release(id.bucket);
}

std::optional<Seconds> EventQueue::first_date() const {
  if (heap_.empty()) return std::nullopt;
  return heap_.front().date;
}

EventQueue::Bucket EventQueue::take_first() {
  const Bucket bucket = heap_.front().bucket;
  remove_from_heap(bucket);
  return bucket;
}

void EventQueue::release(Bucket bucket) {
  Dated& dated = buckets_[bucket];
  by_date_.erase(key_of(dated.date));
  dated.events.clear();
  dated.live = 0;
  free_.push_back(bucket);
}

const std::vector<std::uint32_t>& EventQueue::ordered(Bucket bucket, std::size_t first) {
  const std::vector<QueuedEvent>& events = buckets_[bucket].events;
  order_.resize(events.size() - first);
  std::iota(order_.begin(), order_.end(), static_cast<std::uint32_t>(first));
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return key_of(events[a].order) < key_of(events[b].order);
  };
  if (!std::is_sorted(order_.begin(), order_.end(), before)) std::stable_sort(order_.begin(), order_.end(), before);
  return order_;
}

EventQueue::Bucket EventQueue::bucket_at(Seconds date) {
  const std::uint64_t key = key_of(date);
  if (const std::uint32_t found = by_date_.find(key); found != FlatMap::none) return found;
  Bucket bucket = static_cast<Bucket>(buckets_.size());
  if (free_.empty()) {
    buckets_.emplace_back();
  } else {
    bucket = free_.back();
    free_.pop_back();
  }
  buckets_[bucket].date = date;
  by_date_.insert(key, bucket);
  heap_.push_back({date, bucket});
  sift_up(static_cast<std::uint32_t>(heap_.size() - 1), {date, bucket});
  return bucket;
}

void EventQueue::remove_from_heap(Bucket bucket) {
  const std::uint32_t position = buckets_[bucket].heap_position;
  buckets_[bucket].heap_position = not_in_heap;
  const DateOfBucket last = heap_.back();
  heap_.pop_back();
  if (last.bucket == bucket) return;
  sift_up(position, last);
  sift_down(buckets_[last.bucket].heap_position, last);
}

void EventQueue::place(std::uint32_t position, DateOfBucket entry) {
  heap_[position] = entry;
  buckets_[entry.bucket].heap_position = position;
}

void EventQueue::sift_up(std::uint32_t position, DateOfBucket entry) {
  while (position > 0) {
    const std::uint32_t parent = (position - 1) / 2;
    if (heap_[parent].date <= entry.date) break;
    place(position, heap_[parent]);
    position = parent;
  }
  place(position, entry);
}

void EventQueue::sift_down(std::uint32_t position, DateOfBucket entry) {
  const auto size = static_cast<std::uint32_t>(heap_.size());
  for (std::uint32_t child = 2 * position + 1; child < size; child = 2 * position + 1) {
    if (child + 1 < size && heap_[child + 1].date < heap_[child].date) ++child;
    if (entry.date <= heap_[child].date) break;
    place(position, heap_[child]);
    position = child;
  }
  place(position, entry);
}

}  // namespace hcclsim::sim
