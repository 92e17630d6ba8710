#include "device/skew.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/counter_random.hpp"
#include "base/error.hpp"

namespace hcclsim::device {
namespace {

/// What a number is drawn for; keeps the draws of one rank independent.
enum class Purpose : std::uint64_t { start = 1, speed, jitter };

constexpr std::uint64_t draw(std::uint64_t seed, Purpose purpose, Rank rank) {
  return mix_bits(mix_bits(seed ^ mix_bits(static_cast<std::uint64_t>(purpose))) ^ rank);
}

/// In [0, 1), 53 bits.
constexpr double uniform(std::uint64_t bits) { return static_cast<double>(bits >> 11U) * 0x1p-53; }

/// Sum of twelve uniform numbers of 16 bits, centred: mean 0, variance 1 − 2^−32.
constexpr double near_normal(std::uint64_t state) {
  std::uint64_t sum = 0;
  for (int word = 0; word < 3; ++word) {
    state = mix_bits(state);
    for (unsigned shift = 0; shift < 64; shift += 16) sum += (state >> shift) & 0xffffU;
  }
  return (static_cast<double>(sum) - 12 * 32767.5) * 0x1p-16;
}

/// A number from a stream of bits, which moves on.
double next_uniform(std::uint64_t& state) {
  state = mix_bits(state);
  return uniform(state);
}

/// With mean 1, by von Neumann's method ("Various techniques used in connection with random digits", 1951): the first
/// of a falling run of uniform numbers, if the run has an odd length, behind as many whole numbers as runs were
/// rejected.
double exponential(std::uint64_t state) {
  for (double rejected = 0;; ++rejected) {
    const double first = next_uniform(state);
    bool odd = true;
    for (double last = first;; odd = !odd) {
      const double next = next_uniform(state);
      if (next >= last) break;
      last = next;
    }
    if (odd) return rejected + first;
  }
}

constexpr double root_of_three = 1.7320508075688772;

/// With mean 0 and variance 1.
double standard(JitterShape shape, std::uint64_t state) {
  switch (shape) {
    case JitterShape::normal:
      break;
    case JitterShape::uniform:
      return root_of_three * (2 * uniform(mix_bits(state)) - 1);
    case JitterShape::exponential:
      return exponential(state) - 1;
  }
  return near_normal(state);
}

/// No standard() is less.
double least_standard(JitterShape shape) {
  return shape == JitterShape::normal ? -6 : shape == JitterShape::uniform ? -root_of_three : -1;
}

/// Beyond it a factor might not be positive.
double most_jitter(JitterShape shape) {
  return shape == JitterShape::normal ? 0.16 : shape == JitterShape::uniform ? 0.57 : 0.99;
}

}  // namespace

std::string_view name_of(JitterShape shape) {
  return shape == JitterShape::normal ? "normal" : shape == JitterShape::uniform ? "uniform" : "exponential";
}

Skew::Skew(SkewOptions options, Rank size) : options_(std::move(options)) {
  if (!(options_.start >= 0 && std::isfinite(options_.start))) {
    bad_input("option", "start is at {} s, must be at 0 or later", options_.start);
  }
  if (!(options_.start_skew >= 0 && std::isfinite(options_.start_skew))) {
    bad_input("option", "--start-skew: {} s, must be 0 or more", options_.start_skew);
  }
  if (!(options_.jitter >= 0 && options_.jitter <= most_jitter(options_.shape))) {
    bad_input("option", "--jitter: {} kernel jitter is {}, must be from 0 to {} (relative standard deviation)",
              name_of(options_.shape), options_.jitter, most_jitter(options_.shape));
  }
  if (!(options_.speed_spread >= 0 && options_.speed_spread < 1)) {
    bad_input("option", "--speed-spread: {}, must be from 0 to below 1", options_.speed_spread);
  }
  if (options_.speeds.empty()) return;
  if (options_.speed_spread > 0) bad_input("option", "--speed-factors and --speed-spread: give one of them");
  if (options_.speeds.size() != size) {
    bad_input("option", "--speed-factors: {} factors for {} NPUs; give one per NPU", options_.speeds.size(), size);
  }
  constexpr double lowest_speed = 0.001;
  constexpr double highest_speed = 1000;
  for (std::size_t rank = 0; rank < options_.speeds.size(); ++rank) {
    const double speed = options_.speeds[rank];
    if (!(speed >= lowest_speed && speed <= highest_speed)) {
      bad_input("option", "--speed-factors: that of rank {} is {}, must be from {} to {} (1 is nominal)", rank, speed,
                lowest_speed, highest_speed);
    }
  }
}

void Skew::go_on(std::uint32_t iterations, std::vector<Seconds> ends) {
  first_iteration_ = iterations;
  starts_ = std::move(ends);
}

bool Skew::none() const {
  return !goes_on() && options_.start == 0 && options_.start_skew == 0 && options_.speed_spread == 0 &&
         options_.jitter == 0 &&
         std::all_of(options_.speeds.begin(), options_.speeds.end(), [](double speed) { return speed == 1; });
}

Seconds Skew::start(Rank rank) const {
  if (goes_on()) return starts_.at(rank);
  if (options_.start_skew == 0) return options_.start;
  return options_.start + options_.start_skew * uniform(draw(options_.seed, Purpose::start, rank));
}

double Skew::speed(Rank rank) const {
  if (!options_.speeds.empty()) return options_.speeds[rank];
  if (options_.speed_spread == 0) return 1;
  return 1 + options_.speed_spread * (2 * uniform(draw(options_.seed, Purpose::speed, rank)) - 1);
}

double Skew::jitter(Rank rank, std::uint32_t iteration, std::uint32_t kernel) const {
  if (options_.jitter == 0) return 1;
  const std::uint64_t step = (std::uint64_t{first_iteration_ + iteration} << 32U) | kernel;
  return 1 + options_.jitter * standard(options_.shape, draw(options_.seed, Purpose::jitter, rank) ^ mix_bits(step));
}

double Skew::least_jitter() const { return 1 + options_.jitter * least_standard(options_.shape); }

}  // namespace hcclsim::device
