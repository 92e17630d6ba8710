#include "device/numerics/loops/dropout.hpp"

#include <cmath>

#include "device/numerics/loops/instruction_sets.hpp"

namespace hcclsim::device {
namespace {

/// Products of 64 bits: worth it with AVX-512 above all.
FOR_EVERY_PROCESSOR void mask(std::uint64_t key, std::uint64_t dropped, float scale, const float* in, float* out,
                              std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    const bool keep = (mix_bits(key ^ i) >> 40U) >= dropped;
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
    mask(key_of(first_sample++), dropped_, scale_, in.data() + first, out.data() + first, elements);
  }
}

}  // namespace hcclsim::device
