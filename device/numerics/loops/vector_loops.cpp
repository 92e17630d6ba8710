#include "device/numerics/loops/vector_loops.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "device/numerics/loops/instruction_sets.hpp"

// This file is compiled with -fno-math-errno (CMakeLists.txt): a square root that may set errno is not vectorised.

namespace hcclsim::device {
namespace {

/// The direction in which LAMB moves a weight, before its trust ratio.
INLINE float lamb_update(const UpdateFactors& factors, float first, float second, float weight) {
  return factors.first_scale * first / (factors.second_scale * std::sqrt(second) + factors.epsilon) +
         factors.decay * weight;
}

}  // namespace

// The loops take a copy of the factors: references could be aliases of what the loop writes.

FOR_EVERY_PROCESSOR
void apply_sgd(std::size_t elements, const UpdateFactors& factors, const float* __restrict__ gradient,
               float* __restrict__ weight) {
  const UpdateFactors f = factors;
  for (std::size_t i = 0; i < elements; ++i) {
    weight[i] -= f.rate * (gradient[i] * f.gradient_scale + f.decay * weight[i]);
  }
}

FOR_EVERY_PROCESSOR
void apply_momentum(std::size_t elements, const UpdateFactors& factors, const float* __restrict__ gradient,
                    float* __restrict__ weight, float* __restrict__ velocity) {
  const UpdateFactors f = factors;
  for (std::size_t i = 0; i < elements; ++i) {
    const float direction = gradient[i] * f.gradient_scale + f.decay * weight[i];
    velocity[i] = f.momentum * velocity[i] + direction;
    weight[i] -= f.rate * velocity[i];
  }
}

FOR_EVERY_PROCESSOR
void apply_nesterov(std::size_t elements, const UpdateFactors& factors, const float* __restrict__ gradient,
                    float* __restrict__ weight, float* __restrict__ velocity) {
  const UpdateFactors f = factors;
  for (std::size_t i = 0; i < elements; ++i) {
    const float direction = gradient[i] * f.gradient_scale + f.decay * weight[i];
    velocity[i] = f.momentum * velocity[i] + direction;
    weight[i] -= f.rate * (direction + f.momentum * velocity[i]);
  }
}

FOR_EVERY_PROCESSOR
void apply_lars(std::size_t elements, const UpdateFactors& factors, const float* __restrict__ gradient,
                float* __restrict__ weight, float* __restrict__ velocity) {
  const UpdateFactors f = factors;
  for (std::size_t i = 0; i < elements; ++i) {
    const float direction = gradient[i] * f.gradient_scale + f.decay * weight[i];
    velocity[i] = f.momentum * velocity[i] + f.rate * direction;
    weight[i] -= velocity[i];
  }
}

FOR_EVERY_PROCESSOR
void apply_adam(std::size_t elements, const UpdateFactors& factors, const float* __restrict__ gradient,
                float* __restrict__ weight, float* __restrict__ first, float* __restrict__ second) {
  const UpdateFactors f = factors;
  for (std::size_t i = 0; i < elements; ++i) {
    const float direction = gradient[i] * f.gradient_scale + f.decay * weight[i];
    first[i] = f.beta1 * first[i] + f.rest1 * direction;
    second[i] = f.beta2 * second[i] + f.rest2 * (direction * direction);
    weight[i] = f.shrink * weight[i] - f.rate * first[i] / (f.second_scale * std::sqrt(second[i]) + f.epsilon);
  }
}

FOR_EVERY_PROCESSOR
SquareSums update_lamb_moments(std::size_t elements, const UpdateFactors& factors, const float* __restrict__ gradient,
                               const float* __restrict__ weight, float* __restrict__ first,
                               float* __restrict__ second) {
  constexpr std::size_t chunk = 2048;  // what is summed still lies in the first-level cache
  const UpdateFactors f = factors;
  std::array<float, chunk> updates;
  SquareSums squares;
  for (std::size_t begin = 0; begin < elements; begin += chunk) {
    const std::size_t count = std::min(chunk, elements - begin);
    float* __restrict__ update = updates.data();
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = begin + k;
      const float direction = gradient[i] * f.gradient_scale;
      first[i] = f.beta1 * first[i] + f.rest1 * direction;
      second[i] = f.beta2 * second[i] + f.rest2 * (direction * direction);
      update[k] = lamb_update(f, first[i], second[i], weight[i]);
    }
    squares.weight += sum_of_squares(count, weight + begin);
    squares.direction += sum_of_squares(count, update);
  }
  return squares;
}

FOR_EVERY_PROCESSOR
void apply_lamb(std::size_t elements, const UpdateFactors& factors, const float* __restrict__ first,
                const float* __restrict__ second, float* __restrict__ weight) {
  const UpdateFactors f = factors;
  for (std::size_t i = 0; i < elements; ++i) {
    weight[i] -= f.rate * lamb_update(f, first[i], second[i], weight[i]);
  }
}

// Compilers must not reorder a sum, so its lanes are written out: 32 of them, enough to hide the latency of an
// addition.
FOR_EVERY_PROCESSOR
double sum_of_squares(std::size_t elements, const float* values) {
  constexpr std::size_t width = 8;
  using Floats = float __attribute__((vector_size(width * sizeof(float))));
  using Doubles = double __attribute__((vector_size(width * sizeof(double))));
  constexpr std::size_t vectors = 4;
  std::array<Doubles, vectors> sums{};
  std::size_t i = 0;
  for (; i + vectors * width <= elements; i += vectors * width) {
    for (std::size_t vector = 0; vector < vectors; ++vector) {
      Floats narrow;
      std::memcpy(&narrow, values + i + vector * width, sizeof narrow);
      const Doubles wide = __builtin_convertvector(narrow, Doubles);
      sums[vector] += wide * wide;
    }
  }
  const Doubles lanes = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double sum = 0;
  for (std::size_t lane = 0; lane < width; ++lane) sum += lanes[lane];
  for (; i < elements; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

FOR_EVERY_PROCESSOR
bool all_finite(std::size_t elements, const float* values) {
  constexpr std::uint32_t magnitude = 0x7fffffffU;
  constexpr std::uint32_t infinity = 0x7f800000U;
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & magnitude);
  }
  return largest < infinity;
}

}  // namespace hcclsim::device
