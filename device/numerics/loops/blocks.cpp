#include "device/numerics/loops/blocks.hpp"

#include <algorithm>

namespace hcclsim::device {

void take_part(const AxisForm& whole, const AxisForm& part, std::size_t first, const float* from, float* to) {
  const float* in = from + first * whole.inner;
  for (std::size_t i = 0; i < part.outer; ++i, in += whole.row(), to += part.row()) std::copy_n(in, part.row(), to);
}

void put_part(const AxisForm& whole, const AxisForm& part, std::size_t first, const float* from, float* to) {
  float* out = to + first * whole.inner;
  for (std::size_t i = 0; i < part.outer; ++i, from += part.row(), out += whole.row()) {
    std::copy_n(from, part.row(), out);
  }
}

void add_part(const AxisForm& whole, const AxisForm& part, std::size_t first, const float* from, float* to) {
  float* out = to + first * whole.inner;
  for (std::size_t i = 0; i < part.outer; ++i, from += part.row(), out += whole.row()) {
    for (std::size_t k = 0; k < part.row(); ++k) out[k] += from[k];
  }
}

}  // namespace hcclsim::device
