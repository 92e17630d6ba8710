#pragma once

#include <cstddef>
#include <vector>

namespace hcclsim::hccl {

/// First in, first out, in one block of memory, none while it was never used: there are thousands of streams with a few
/// tasks each. What was taken out is freed when more of it than of the rest is there.
template <typename Item>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return first_ == items_.size(); }
  [[nodiscard]] const Item& front() const { return items_[first_]; }
  [[nodiscard]] std::size_t size() const { return items_.size() - first_; }
  [[nodiscard]] auto begin() const { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  [[nodiscard]] auto end() const { return items_.end(); }

  void push(const Item& item) {
    if (first_ > items_.size() / 2) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    items_.push_back(item);
  }

  void pop() {
    if (++first_ == items_.size()) {
      items_.clear();
      first_ = 0;
    }
  }

 private:
  std::vector<Item> items_;
  std::size_t first_ = 0;
};

}  // namespace hcclsim::hccl
