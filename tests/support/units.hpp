#pragma once

#include "base/units.hpp"

namespace hcclsim::test {

/// A microsecond, as hand calculations write it.
inline constexpr Seconds us = 1e-6;

}  // namespace hcclsim::test
