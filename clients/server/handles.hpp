#pragma once

#include <cstdint>

namespace hcclsim::clients {

/// What a handle names; plain: something that only a number tells apart.
enum class HandleKind : std::uint8_t { plain = 0, stream = 0x51, event = 0x52, communicator = 0x53, window = 0x54 };

/// Gives out the numbers by which programs name what they have made, all different.
class Handles {
 public:
  /// Returns the next one, with its kind in the highest byte.
  [[nodiscard]] std::uint64_t next(HandleKind kind = HandleKind::plain) {
    return (std::uint64_t{static_cast<std::uint8_t>(kind)} << 56U) | next_++;
  }

 private:
  std::uint64_t next_ = 1;
};

}  // namespace hcclsim::clients
