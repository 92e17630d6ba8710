#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "sim/flat_map.hpp"

/// The events to come, in one bucket per date. Thousands of NPUs in lockstep put thousands of events at one date, so
/// only distinct dates enter the heap. Buckets are recycled: in steady state an event costs no allocation.
namespace hcclsim::sim {

/// Where an event belongs, for ordering among events of one date.
struct EventOrder {
  Rank rank = 0;
  std::uint32_t stream = 0;
};

/// Receives events without an allocation for each; `tag` is what was passed when the event was made.
class EventHandler {
 public:
  virtual void on_event(std::uint64_t tag) = 0;
  virtual ~EventHandler() = default;
};

/// Names an event that has not fired yet, to cancel it.
struct EventId {
  std::uint32_t bucket = 0;
  std::uint32_t index = 0;
};

struct QueuedEvent {
  EventHandler* handler = nullptr;  ///< null: cancelled
  std::uint64_t tag = 0;
  EventOrder order;
};

class EventQueue {
 public:
  using Bucket = std::uint32_t;

  EventId add(Seconds date, const QueuedEvent& event) {
    const Bucket bucket = bucket_at(date);
    Dated& dated = buckets_[bucket];
    ++dated.live;
    dated.events.push_back(event);
    return {bucket, static_cast<std::uint32_t>(dated.events.size() - 1)};
  }

  /// Cancels an event that has not been taken.
  void cancel(EventId id) {
    Dated& dated = buckets_[id.bucket];
    dated.events[id.index].handler = nullptr;
    if (--dated.live > 0 || dated.heap_position == not_in_heap) return;
    remove_from_heap(id.bucket);
    release(id.bucket);
  }

  /// The earliest date that has an event.
  [[nodiscard]] std::optional<Seconds> first_date() const {
    if (heap_.empty()) return std::nullopt;
    return heap_.front().date;
  }

  /// Takes the bucket of the earliest date out of the queue; its events can be read until release(), and events added
  /// for its date meanwhile go into it.
  [[nodiscard]] Bucket take_first() {
    const Bucket bucket = heap_.front().bucket;
    remove_from_heap(bucket);
    return bucket;
  }

  void release(Bucket bucket) {
    Dated& dated = buckets_[bucket];
    by_date_.erase(key_of(dated.date));
    dated.events.clear();
    dated.live = 0;
    free_.push_back(bucket);
  }

  [[nodiscard]] Seconds date(Bucket bucket) const { return buckets_[bucket].date; }
  [[nodiscard]] std::size_t size(Bucket bucket) const { return buckets_[bucket].events.size(); }
  [[nodiscard]] QueuedEvent event(Bucket bucket, std::size_t index) const { return buckets_[bucket].events[index]; }
  /// Indices of the events [first, size) by (rank, stream, insertion); valid until the next call.
  [[nodiscard]] const std::vector<std::uint32_t>& ordered(Bucket bucket, std::size_t first) {
    const std::vector<QueuedEvent>& events = buckets_[bucket].events;
    order_.resize(events.size() - first);
    std::iota(order_.begin(), order_.end(), static_cast<std::uint32_t>(first));
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
      return key_of(events[a].order) < key_of(events[b].order);
    };
    if (!std::is_sorted(order_.begin(), order_.end(), before)) std::stable_sort(order_.begin(), order_.end(), before);
    return order_;
  }

 private:
  static constexpr std::uint32_t not_in_heap = 0xffffffff;

  struct Dated {
    Seconds date = 0;
    std::uint32_t heap_position = not_in_heap;
    std::uint32_t live = 0;  // events that are not cancelled
    std::vector<QueuedEvent> events;
  };

  /// The heap keeps the dates itself: looking them up in the buckets costs a cache miss for each comparison.
  struct DateOfBucket {
    Seconds date = 0;
    Bucket bucket = 0;
  };

  /// Equal for equal dates: adding 0 turns −0 into 0.
  static std::uint64_t key_of(Seconds date) { return std::bit_cast<std::uint64_t>(date + 0.0); }
  static std::uint64_t key_of(EventOrder order) { return std::uint64_t{order.rank} << 32 | order.stream; }

  Bucket bucket_at(Seconds date) {
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

  void remove_from_heap(Bucket bucket) {
    const std::uint32_t position = buckets_[bucket].heap_position;
    buckets_[bucket].heap_position = not_in_heap;
    const DateOfBucket last = heap_.back();
    heap_.pop_back();
    if (last.bucket == bucket) return;
    sift_up(position, last);
    sift_down(buckets_[last.bucket].heap_position, last);
  }

  void place(std::uint32_t position, DateOfBucket entry) {
    heap_[position] = entry;
    buckets_[entry.bucket].heap_position = position;
  }

  void sift_up(std::uint32_t position, DateOfBucket entry) {
    while (position > 0) {
      const std::uint32_t parent = (position - 1) / 2;
      if (heap_[parent].date <= entry.date) break;
      place(position, heap_[parent]);
      position = parent;
    }
    place(position, entry);
  }

  void sift_down(std::uint32_t position, DateOfBucket entry) {
    const auto size = static_cast<std::uint32_t>(heap_.size());
    for (std::uint32_t child = 2 * position + 1; child < size; child = 2 * position + 1) {
      if (child + 1 < size && heap_[child + 1].date < heap_[child].date) ++child;
      if (entry.date <= heap_[child].date) break;
      place(position, heap_[child]);
      position = child;
    }
    place(position, entry);
  }

  std::vector<Dated> buckets_;
  std::vector<Bucket> free_;
  std::vector<DateOfBucket> heap_;  // binary, least date first
  FlatMap by_date_;                 // bits of the date -> bucket
  std::vector<std::uint32_t> order_;
};

}  // namespace hcclsim::sim
