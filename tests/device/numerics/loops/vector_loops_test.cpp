// Vectorised loops against the same operations one element after the other: not a bit may differ, whatever instruction
// set the processor has and wherever a buffer begins and ends.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/counter_random.hpp"
#include "device/numerics/loops/vector_loops.hpp"

namespace hcclsim::device {
namespace {

constexpr UpdateFactors factors{.gradient_scale = 0.3F,
                                .decay = 0.01F,
                                .shrink = 0.99F,
                                .rate = 0.07F,
                                .momentum = 0.9F,
                                .beta1 = 0.8F,
                                .beta2 = 0.99F,
                                .rest1 = 0.2F,
                                .rest2 = 0.01F,
                                .first_scale = 1.7F,
                                .second_scale = 1.3F,
                                .epsilon = 1e-6F};

/// Magnitudes over many powers of two, as products that would be rounded otherwise if fused into additions.
std::vector<float> values(std::uint64_t stream, std::size_t elements) {
  std::vector<float> made(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    const auto exponent = static_cast<int>(counter_bits(9, stream, i) & 15U) - 8;
    made[i] = static_cast<float>(std::ldexp(counter_uniform(9, stream, i), exponent));
  }
  return made;
}

/// Buffers of one update.
struct Buffers {
  explicit Buffers(std::size_t elements)
      : gradient(values(1, elements)),
        weight(values(2, elements)),
        first(values(3, elements)),
        second(values(4, elements)) {
    for (float& value : second) value = std::abs(value);
  }

  void expect_bits_of(const Buffers& other) const {
    for (std::size_t i = 0; i < weight.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(weight[i]), std::bit_cast<std::uint32_t>(other.weight[i])) << i;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(first[i]), std::bit_cast<std::uint32_t>(other.first[i])) << i;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(second[i]), std::bit_cast<std::uint32_t>(other.second[i])) << i;
    }
  }

  std::vector<float> gradient;
  std::vector<float> weight;
  std::vector<float> first;
  std::vector<float> second;
};

/// The rounding of every operation, which the compiler must neither leave out nor fuse.
float rounded(float value) {
  volatile float stored = value;
  return stored;
}

float scaled_gradient(const Buffers& buffers, std::size_t i) {
  return rounded(buffers.gradient[i] * factors.gradient_scale);
}

float decayed_gradient(const Buffers& buffers, std::size_t i) {
  return rounded(scaled_gradient(buffers, i) + rounded(factors.decay * buffers.weight[i]));
}

void update_moments(Buffers& buffers, std::size_t i, float direction) {
  buffers.first[i] = rounded(rounded(factors.beta1 * buffers.first[i]) + rounded(factors.rest1 * direction));
  buffers.second[i] =
      rounded(rounded(factors.beta2 * buffers.second[i]) + rounded(factors.rest2 * rounded(direction * direction)));
}

float denominator(const Buffers& buffers, std::size_t i) {
  return rounded(rounded(factors.second_scale * rounded(std::sqrt(buffers.second[i]))) + factors.epsilon);
}

float lamb_update(const Buffers& buffers, std::size_t i) {
  return rounded(rounded(rounded(factors.first_scale * buffers.first[i]) / denominator(buffers, i)) +
                 rounded(factors.decay * buffers.weight[i]));
}

class Elements : public testing::TestWithParam<std::size_t> {
 protected:
  Buffers buffers_{GetParam()};
  Buffers expected_{GetParam()};
};

TEST_P(Elements, Sgd) {
  for (std::size_t i = 0; i < GetParam(); ++i) {
    expected_.weight[i] = rounded(expected_.weight[i] - rounded(factors.rate * decayed_gradient(expected_, i)));
  }
  apply_sgd(GetParam(), factors, buffers_.gradient.data(), buffers_.weight.data());
  buffers_.expect_bits_of(expected_);
}

TEST_P(Elements, Momentum) {
  for (std::size_t i = 0; i < GetParam(); ++i) {
    const float direction = decayed_gradient(expected_, i);
    expected_.first[i] = rounded(rounded(factors.momentum * expected_.first[i]) + direction);
    expected_.weight[i] = rounded(expected_.weight[i] - rounded(factors.rate * expected_.first[i]));
  }
  apply_momentum(GetParam(), factors, buffers_.gradient.data(), buffers_.weight.data(), buffers_.first.data());
  buffers_.expect_bits_of(expected_);
}

TEST_P(Elements, Nesterov) {
  for (std::size_t i = 0; i < GetParam(); ++i) {
    const float direction = decayed_gradient(expected_, i);
    expected_.first[i] = rounded(rounded(factors.momentum * expected_.first[i]) + direction);
    const float step = rounded(direction + rounded(factors.momentum * expected_.first[i]));
    expected_.weight[i] = rounded(expected_.weight[i] - rounded(factors.rate * step));
  }
  apply_nesterov(GetParam(), factors, buffers_.gradient.data(), buffers_.weight.data(), buffers_.first.data());
  buffers_.expect_bits_of(expected_);
}

TEST_P(Elements, Lars) {
  for (std::size_t i = 0; i < GetParam(); ++i) {
    const float direction = decayed_gradient(expected_, i);
    expected_.first[i] = rounded(rounded(factors.momentum * expected_.first[i]) + rounded(factors.rate * direction));
    expected_.weight[i] = rounded(expected_.weight[i] - expected_.first[i]);
  }
  apply_lars(GetParam(), factors, buffers_.gradient.data(), buffers_.weight.data(), buffers_.first.data());
  buffers_.expect_bits_of(expected_);
}

TEST_P(Elements, Adam) {
  for (std::size_t i = 0; i < GetParam(); ++i) {
    update_moments(expected_, i, decayed_gradient(expected_, i));
    const float step = rounded(rounded(factors.rate * expected_.first[i]) / denominator(expected_, i));
    expected_.weight[i] = rounded(rounded(factors.shrink * expected_.weight[i]) - step);
  }
  apply_adam(GetParam(), factors, buffers_.gradient.data(), buffers_.weight.data(), buffers_.first.data(),
             buffers_.second.data());
  buffers_.expect_bits_of(expected_);
}

TEST_P(Elements, Lamb) {
  SquareSums sums;
  for (std::size_t i = 0; i < GetParam(); ++i) {
    update_moments(expected_, i, scaled_gradient(expected_, i));
    sums.weight += std::pow(double{expected_.weight[i]}, 2);
    sums.direction += std::pow(double{lamb_update(expected_, i)}, 2);
  }
  const SquareSums found = update_lamb_moments(GetParam(), factors, buffers_.gradient.data(), buffers_.weight.data(),
                                               buffers_.first.data(), buffers_.second.data());
  EXPECT_NEAR(found.weight, sums.weight, 1e-13 * sums.weight);
  EXPECT_NEAR(found.direction, sums.direction, 1e-13 * sums.direction);
  for (std::size_t i = 0; i < GetParam(); ++i) {
    expected_.weight[i] = rounded(expected_.weight[i] - rounded(factors.rate * lamb_update(expected_, i)));
  }
  apply_lamb(GetParam(), factors, buffers_.first.data(), buffers_.second.data(), buffers_.weight.data());
  buffers_.expect_bits_of(expected_);
}

/// Integers, so that every order of the additions is exact.
TEST_P(Elements, SumOfSquares) {
  std::vector<float> integers(GetParam());
  double sum = 0;
  for (std::size_t i = 0; i < integers.size(); ++i) {
    integers[i] = static_cast<float>(counter_bits(3, 3, i) % 2001) - 1000;
    sum += double{integers[i]} * integers[i];
  }
  EXPECT_EQ(sum_of_squares(integers.size(), integers.data()), sum);
}

TEST_P(Elements, FindsEveryValueThatIsNotFinite) {
  using Limits = std::numeric_limits<float>;
  std::vector<float> finite(GetParam(), -Limits::max());
  EXPECT_TRUE(all_finite(finite.size(), finite.data()));
  for (const float bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::signaling_NaN()}) {
    for (std::size_t i = 0; i < finite.size(); i += 1 + i / 64) {
      std::vector<float> values = finite;
      values[i] = bad;
      ASSERT_FALSE(all_finite(values.size(), values.data())) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, Elements, testing::Values(0, 1, 3, 8, 15, 16, 31, 33, 64, 100, 2047, 4099),
                         [](const auto& tested) { return fmt::format("{}_elements", tested.param); });

}  // namespace
}  // namespace hcclsim::device
