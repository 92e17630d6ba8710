#include "hccl/verify/test_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/counter_random.hpp"
#include "device/numerics/loops/rounding.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint64_t more_bits = std::uint64_t{1} << 40U;  // of fp64
constexpr std::uint64_t holders = std::uint64_t{1} << 41U;    // of special numbers

bool is_signed(DataType type) {
  return type == DataType::int8 || type == DataType::int16 || type == DataType::int32 || type == DataType::int64;
}

std::int64_t exact_limit_of(DataType type, ReduceOp op, Rank ranks) {
  if (op == ReduceOp::prod) {
    // Products of `ranks` powers of two stay in the range of normal numbers.
    const double largest = std::log2(device::largest_finite(type));
    return ranks < largest - 2 ? 1 : 0;
  }
  // Whole numbers up to 1/(2u) have all their bits.
  const auto whole = static_cast<std::int64_t>(0.5 / device::unit_roundoff(type)) / ranks;
  return whole >= 1 ? std::min<std::int64_t>(whole, 1 << 15) : -1;
}

}  // namespace

TestData::TestData(const Operation& operation, std::uint64_t seed)
    : type_(operation.type),
      op_(operation.op),
      bits_(!is_float(operation.type) || !reduces(operation.collective)),
      ranks_(operation.ranks),
      seed_(seed) {
  if (!bits_) exact_limit_ = exact_limit_of(type_, op_, ranks_);
}

bool TestData::exact(std::uint64_t element) const {
  if (bits_ || op_ == ReduceOp::max || op_ == ReduceOp::min) return true;
  return (element % 2 == 0 && exact_limit_ >= 0) || special(element) != Special::none;
}

Special TestData::special(std::uint64_t element) const {
  constexpr std::uint64_t period = 8;
  constexpr std::uint64_t place = 5;  // among those that are not exact anyway
  if (bits_ || ranks_ < 2 || element % period != place) return Special::none;
  constexpr auto kinds = static_cast<std::uint64_t>(Special::subnormal);
  const auto special = static_cast<Special>(1 + element / period % kinds);
  if (special == Special::zeros && (op_ == ReduceOp::max || op_ == ReduceOp::min)) return Special::none;
  if (special == Special::subnormal && op_ == ReduceOp::sum && exact_limit_ < 0) return Special::none;
  return special;
}

double TestData::exact_number(std::uint64_t bits) const {
  const double sign = (bits & 1U) != 0 ? -1 : 1;
  bits >>= 1U;
  if (op_ == ReduceOp::prod) {
    const auto exponents = static_cast<std::uint64_t>(2 * exact_limit_ + 1);
    return sign * std::ldexp(1.0, static_cast<int>(bits % exponents) - static_cast<int>(exact_limit_));
  }
  return sign * static_cast<double>(1 + bits % static_cast<std::uint64_t>(exact_limit_));
}

/// Less than the smallest normal number; of a product, only that of the `first` rank.
double TestData::subnormal_number(std::uint64_t bits, bool first) const {
  if (op_ == ReduceOp::sum) return exact_number(bits) * device::smallest_subnormal(type_);
  const double sign = (bits & 1U) != 0 ? -1 : 1;
  if (op_ == ReduceOp::prod && !first) return sign;
  const auto normal = static_cast<std::uint64_t>(0.5 / device::unit_roundoff(type_));
  return sign * static_cast<double>(1 + (bits >> 1U) % (normal - 1)) * device::smallest_subnormal(type_);
}

double TestData::number(Rank rank, std::uint64_t element) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto first = static_cast<Rank>(counter_bits(seed_, random_stream::verified_data + holders, element) % ranks_);
  switch (special(element)) {
    case Special::infinity:
      if (rank == first) return infinity;
      break;
    case Special::infinities:
      if (rank == first) return infinity;
      if (rank == (first + 1) % ranks_) return -infinity;
      break;
    case Special::not_a_number:
      if (rank == first) return std::numeric_limits<double>::quiet_NaN();
      break;
    case Special::minus_zero:
      return -0.0;
    case Special::zeros:
      return rank == first ? 0.0 : -0.0;
    case Special::subnormal:
      return subnormal_number(counter_bits(seed_, random_stream::verified_data + rank, element), rank == first);
    case Special::none:
      break;
  }
  return ordinary_number(random_stream::verified_data + rank, element);
}

double TestData::ordinary_number(std::uint64_t stream, std::uint64_t element) const {
  if (exact_limit_ >= 0 && element % 2 == 0 && op_ != ReduceOp::max && op_ != ReduceOp::min) {
    return exact_number(counter_bits(seed_, stream, element));
  }
  double uniform = counter_uniform(seed_, stream, element);
  if (type_ == DataType::fp64) uniform += 0x1p-29 * counter_uniform(seed_, stream + more_bits, element);
  if (op_ != ReduceOp::prod) return uniform;
  return std::copysign(1 + uniform / ranks_, (counter_bits(seed_, stream, element) & 1U) != 0 ? -1.0 : 1.0);
}

void TestData::fill(Rank rank, std::uint64_t first, std::span<std::byte> out) const {
  const Bytes width = size_of(type_);
  const std::size_t count = out.size() / width;
  if (bits_) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t bits = counter_bits(seed_, random_stream::verified_data + rank, first + i);
      if (op_ == ReduceOp::prod) bits |= 1U;
      std::memcpy(out.data() + i * width, &bits, width);
    }
    return;
  }
  if (type_ == DataType::fp64) {
    for (std::size_t i = 0; i < count; ++i) {
      const double value = number(rank, first + i);
      std::memcpy(out.data() + i * width, &value, width);
    }
    return;
  }
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(number(rank, first + i));
  if (type_ == DataType::fp32) {
    std::memcpy(out.data(), values.data(), out.size());
  } else {
    device::narrow(type_, device::Overflow::infinity, values, out.data());
  }
}

void TestData::fill_with_nothing(std::span<std::byte> out) const {
  int byte = 0xFF;  // a NaN of every type; −1, the largest number without sign
  if (!is_float(type_) && op_ == ReduceOp::max && is_signed(type_)) byte = 0x7F;
  if (!is_float(type_) && op_ == ReduceOp::min) byte = is_signed(type_) ? 0x80 : 0;
  if (!out.empty()) std::memset(out.data(), byte, out.size());
}

}  // namespace hcclsim::hccl
