#pragma once

#include <cstddef>

#include "base/units.hpp"
#include "device/numerics/loops/rounding.hpp"

/// Element-wise reduction of two buffers: the step that all reducing collectives consist of.
///
///     integers    exact modulo 2^bits (two's complement), as the device's adders wrap around
///     fp32, fp64  computed in their own type, rounded to nearest even
///     fp16, bf16  computed in fp32 and rounded once; for sum and prod that is the correctly rounded result, since 24
///                 bits are at least 2·11 + 2 (S. Figueroa, When is double rounding innocuous?, 1995); excepted are
///                 products below the normal range of bf16
///     max, min    a NaN if either is a NaN; of two equal numbers (+0 and −0) the destination
///
/// If a sum or product is a NaN, it is not specified which NaN. Overflow::saturate applies to fp16 and bf16 only: it is
/// a mode of the 910A for these types. fp32 and fp64 give infinities.
namespace hcclsim::device {

/// destination[i] = destination[i] op source[i] for `elements` elements; neither need be aligned, and they do not
/// overlap. Returns whether any result is infinite or was cut to the largest finite number; false for integers.
bool reduce(DataType type, ReduceOp op, Overflow overflow, std::byte* destination, const std::byte* source,
            std::size_t elements);

}  // namespace hcclsim::device
