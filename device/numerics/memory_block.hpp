#pragma once

#include <cstddef>
#include <span>

/// Memory for tensors, mapped from the system: it is zero without a pass over it, and its size is a multiple of the
/// page size.
namespace hcclsim::device {

class MemoryBlock {
 public:
  /// Throws Error(bad_input) of kind "memory" if the system does not have that much.
  explicit MemoryBlock(std::size_t bytes);
  MemoryBlock(const MemoryBlock& other);
  MemoryBlock(MemoryBlock&& other) noexcept;
  MemoryBlock& operator=(const MemoryBlock&) = delete;
  ~MemoryBlock();

  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] std::span<float> floats() { return {static_cast<float*>(static_cast<void*>(data_)), bytes_ / 4}; }
  [[nodiscard]] std::span<const float> floats() const {
    return {static_cast<const float*>(static_cast<const void*>(data_)), bytes_ / 4};
  }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace hcclsim::device
