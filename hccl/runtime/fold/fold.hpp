#pragma once

#include <cstdint>

namespace hcclsim::hccl {

/// Whether of ranks that do the same one is simulated (rank_orbits.hpp): where there are such ranks and the network is
/// `fluid`; never; always, and it is an error if there are none.
enum class Fold : std::uint8_t { automatic, off, require };

}  // namespace hcclsim::hccl
