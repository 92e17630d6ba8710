#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "sim/event_loop.hpp"
#include "sim/flat_map.hpp"

/// The events to come, in one bucket per date. Thousands of NPUs in lockstep put thousands of events at one date, so
/// only distinct dates enter the heap. Buckets are recycled: in steady state an event costs no allocation.
namespace hcclsim::sim {

struct QueuedEvent {
  EventHandler* handler = nullptr;  ///< null: cancelled
  std::uint64_t tag = 0;
  EventOrder order;
};

class EventQueue {
 public:
  using Bucket = std::uint32_t;

  EventId add(Seconds date, const QueuedEvent& event);
  /// Cancels an event that has not been taken.
  void cancel(EventId id);

  /// The earliest date that has an event.
  [[nodiscard]] std::optional<Seconds> first_date() const;

  /// Takes the bucket of the earliest date out of the queue; its events can be read until release(), and events added
  /// for its date meanwhile go into it.
  [[nodiscard]] Bucket take_first();
  void release(Bucket bucket);
  [[nodiscard]] Seconds date(Bucket bucket) const { return buckets_[bucket].date; }
  [[nodiscard]] std::size_t size(Bucket bucket) const { return buckets_[bucket].events.size(); }
  [[nodiscard]] QueuedEvent event(Bucket bucket, std::size_t index) const { return buckets_[bucket].events[index]; }
  /// Indices of the events [first, size) by (rank, stream, insertion); valid until the next call.
  [[nodiscard]] const std::vector<std::uint32_t>& ordered(Bucket bucket, std::size_t first);

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

  Bucket bucket_at(Seconds date);
  void remove_from_heap(Bucket bucket);
  void place(std::uint32_t position, DateOfBucket entry);
  void sift_up(std::uint32_t position, DateOfBucket entry);
  void sift_down(std::uint32_t position, DateOfBucket entry);

  std::vector<Dated> buckets_;
  std::vector<Bucket> free_;
  std::vector<DateOfBucket> heap_;  // binary, least date first
  FlatMap by_date_;                 // bits of the date -> bucket
  std::vector<std::uint32_t> order_;
};

}  // namespace hcclsim::sim
