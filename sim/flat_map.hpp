#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/counter_random.hpp"

/// A hash map from 64-bit keys to 32-bit values in one array (linear probing, erasure by shifting back). It is what
/// finds the bucket of a date and the route of a pair of NPUs, millions of times, without a memory block per entry.
namespace hcclsim::sim {

class FlatMap {
 public:
  static constexpr std::uint32_t none = 0xffffffff;  ///< not a value that can be stored

  /// The value stored under `key`, or `none`.
  [[nodiscard]] std::uint32_t find(std::uint64_t key) const { return slots_.empty() ? none : slots_[probe(key)].value; }

  /// Stores `value` under a `key` that is not in the map.
  void insert(std::uint64_t key, std::uint32_t value) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    slots_[probe(key)] = {key, value};
    ++size_;
  }

  /// Removes a `key` that is in the map.
  void erase(std::uint64_t key) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t hole = probe(key);
    for (std::size_t next = (hole + 1) & mask; slots_[next].value != none; next = (next + 1) & mask) {
      // An entry may fill the hole unless the hole lies before its home, seen from where the entry is.
      if (((next - home(slots_[next].key)) & mask) < ((next - hole) & mask)) continue;
      slots_[hole] = slots_[next];
      hole = next;
    }
    slots_[hole].value = none;
    --size_;
  }

  void clear() {
    slots_.clear();
    size_ = 0;
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t value = none;
  };

  /// Mixed, as dates and pairs of ranks differ in few bits.
  [[nodiscard]] std::size_t home(std::uint64_t key) const { return mix_bits(key) & (slots_.size() - 1); }

  /// Where `key` is, or the free slot where it would go.
  [[nodiscard]] std::size_t probe(std::uint64_t key) const {
    std::size_t slot = home(key);
    while (slots_[slot].value != none && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.value != none) slots_[probe(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::size_t size_ = 0;
};

}  // namespace hcclsim::sim
