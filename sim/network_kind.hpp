#pragma once

#include <cstdint>
#include <string_view>

namespace hcclsim::sim {

/// The implementations of sim/network/network.hpp.
enum class NetworkKind : std::uint8_t { simgrid, fluid };

[[nodiscard]] std::string_view name_of(NetworkKind kind);

}  // namespace hcclsim::sim
