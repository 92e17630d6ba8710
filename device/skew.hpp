#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// Real NPUs neither start a step at the same date nor run at the same speed. Skew gives every rank a start offset and
/// a speed, and every kernel of every iteration a random factor. All of them are functions of (seed, rank, iteration,
/// kernel) alone: they do not depend on the order in which they are asked for, and they use no random distribution or
/// mathematical function of a library, whose last digit may differ between machines.
namespace hcclsim::device {

/// Distribution of a kernel's jitter, with mean 0 and variance 1 before it is scaled: near the normal one, uniform, or
/// exponential, with a tail of kernels that take far longer.
enum class JitterShape : std::uint8_t { normal, uniform, exponential };

[[nodiscard]] std::string_view name_of(JitterShape shape);

struct SkewOptions {
  Seconds start = 0;             ///< date from which on ranks start
  Seconds start_skew = 0;        ///< ranks start uniformly in [start, start + start_skew)
  std::vector<double> speeds{};  ///< relative speed of every rank, 1 = nominal; empty: none
  double speed_spread = 0;       ///< ranks' speeds lie uniformly in [1 − spread, 1 + spread); below 1
  /// Relative standard deviation of a kernel's duration: at most 0.16, of uniform jitter 0.57, of exponential 0.99.
  double jitter = 0;
  JitterShape shape = JitterShape::normal;
  std::uint64_t seed = 1;
};

class Skew {
 public:
  /// No skew at all.
  Skew() = default;

  /// For a cluster of `size` ranks. Throws Error(bad_input, "option") for values out of range, for a list of speeds
  /// that does not have one per rank, and for speeds given both as list and as spread.
  Skew(SkewOptions options, Rank size);

  /// True if every start is 0 and every factor 1: ranks are alike.
  [[nodiscard]] bool none() const;

  /// False if all factors on kernels are 1.
  [[nodiscard]] bool jitters() const { return options_.jitter > 0; }
  void remove_jitter() { options_.jitter = 0; }
  /// Training that was simulated before goes on after its first `iterations`, which the ranks ended at these dates:
  /// they are the ranks' starts, and the jitter is that of the iterations to come.
  void go_on(std::uint32_t iterations, std::vector<Seconds> ends);
  [[nodiscard]] bool goes_on() const { return !starts_.empty(); }

  /// Date at which a rank starts its first iteration.
  [[nodiscard]] Seconds start(Rank rank) const;

  /// Durations on this rank are divided by it.
  [[nodiscard]] double speed(Rank rank) const;

  /// Factor on the duration of one kernel: 1 + jitter · z, z with mean 0 and variance 1; positive. Of normal jitter z
  /// is the sum of twelve uniform numbers, |z| < 6; of exponential jitter 1 + z is exponential, by von Neumann's
  /// comparisons of uniform numbers.
  [[nodiscard]] double jitter(Rank rank, std::uint32_t iteration, std::uint32_t kernel) const;
  /// No factor is smaller.
  [[nodiscard]] double least_jitter() const;

 private:
  SkewOptions options_;
  std::uint32_t first_iteration_ = 0;
  std::vector<Seconds> starts_;  // of a training that goes on; empty otherwise
};

}  // namespace hcclsim::device
