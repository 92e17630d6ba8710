#include "device/numerics/loops/dropout.hpp"

#include <cmath>

#include "device/numerics/loops/instruction_sets.hpp"

namespace hcclsim::device {
namespace {

/// Products of 64 bits: worth it with AVX-512 above all.
FOR_EVERY_PROCESSOR void mask(std::uint64_t key, std::uint64_t first, std::uint64_t dropped, float scale,
                              const float* in, float* out, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    const bool keep = (mix_bits(key ^ (first + i)) >> 40U) >= dropped;
    const float scaled = in[i] * scale;
    out[i] = keep ? scaled : 0.0F;
  }
}

}  // namespace

Dropout::Dropout(std::uint64_t seed, std::uint32_t op, float rate)
    : key_(mix_bits(mix_bits(seed) ^ op)),
      dropped_(static_cast<std::uint64_t>(std::llround(static_cast<double>(rate) * 0x1p24))),
      scale_(1 / (1 - rate)) {}

void Dropout::apply(std::uint64_t first_sample, std::size_t elements, std::span<const float> in,
                    std::span<float> out) const {
  for (std::size_t first = 0; first < in.size(); first += elements) {
    mask(key_of(first_sample++), 0, dropped_, scale_, in.data() + first, out.data() + first, elements);
  }
}

/// Row by row of the last axis, which is in one sample.
void Dropout::apply(std::uint64_t first_sample, const TensorPart& part, std::span<const float> in,
                    std::span<float> out) const {
  const std::size_t axes = part.sizes.size();
  const std::size_t row = part.sizes.back();
  std::vector<std::uint32_t> at(axes, 0);
  for (std::size_t first = 0; first < in.size(); first += row) {
    std::uint64_t place = 0;
    for (std::size_t axis = 0; axis < axes; ++axis) place = place * part.whole[axis] + part.first[axis] + at[axis];
    mask(key_of(first_sample + place / part.of_sample), place % part.of_sample, dropped_, scale_, in.data() + first,
         out.data() + first, row);
    for (std::size_t axis = axes - 1; axis-- > 0;) {
      if (++at[axis] < part.sizes[axis]) break;
      at[axis] = 0;
    }
  }
}

}  // namespace hcclsim::device
