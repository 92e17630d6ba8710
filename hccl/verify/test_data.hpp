#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/units.hpp"
#include "hccl/schedule/operation.hpp"

/// Data that reveals what a collective does: random, and different for every rank and element, so that bytes from the
/// wrong place give a wrong result.
///
/// A sum of rounded numbers could hide a missing contribution within its error bound. So every second element is chosen
/// such that the reduction is *exact* in any order: whole numbers whose sum the type can hold, signed powers of two for
/// products. The others are uniform in [−1, 1) (products: near ±1) and show the rounding. Integers are always exact,
/// modulo 2^bits; for products they are odd, because a product of even ones soon becomes 0. Data that is only moved is
/// random bits, with NaNs of all kinds among them.
///
/// For floating-point numbers that are reduced over at least two ranks, every eighth element is special: one rank holds
/// the value in the table, the others hold ordinary numbers unless the table says otherwise. IEEE 754 gives the same
/// result in every order:
///
///     special         one rank  the others           sum         prod            max, min
///     infinity        +∞                             +∞          ±∞              +∞, the others' least
///     infinities      +∞        one −∞               NaN         ±∞              +∞, −∞
///     not_a_number    NaN                            NaN         NaN             NaN
///     minus_zero      −0        −0                   −0          ±0 by parity    −0
///     zeros           +0        −0                   +0          ±0 by parity    there are none: +0 = −0
///     subnormal       subnormal subnormal (prod ±1)  exact       exact           one of them
///
/// A maximum or minimum with a NaN is a NaN (device/numerics/loops/reduce.hpp). Sums in a type that has no exact whole
/// numbers for that number of ranks have no subnormals either.
namespace hcclsim::hccl {

enum class Special : std::uint8_t { none, infinity, infinities, not_a_number, minus_zero, zeros, subnormal };

class TestData {
 public:
  TestData(const Operation& operation, std::uint64_t seed);

  /// Elements `first` … of what `rank` holds in the beginning, in the operation's type.
  void fill(Rank rank, std::uint64_t first, std::span<std::byte> out) const;
  /// Fills with a value that no element has and that spoils every reduction: NaN; for integers the largest value in a
  /// maximum, the smallest in a minimum, otherwise −1.
  void fill_with_nothing(std::span<std::byte> out) const;

  /// The reduction of this element over all ranks does not round.
  [[nodiscard]] bool exact(std::uint64_t element) const;
  [[nodiscard]] Special special(std::uint64_t element) const;

 private:
  [[nodiscard]] double number(Rank rank, std::uint64_t element) const;
  [[nodiscard]] double ordinary_number(std::uint64_t stream, std::uint64_t element) const;
  [[nodiscard]] double subnormal_number(std::uint64_t bits, bool first) const;
  [[nodiscard]] double exact_number(std::uint64_t bits) const;

  DataType type_;
  ReduceOp op_;
  bool bits_;  // integers, or numbers that are only moved
  Rank ranks_;
  std::uint64_t seed_;
  /// Largest whole number (sum), or largest exponent (product), of the exact elements; negative: there are none.
  std::int64_t exact_limit_ = -1;
};

}  // namespace hcclsim::hccl
