#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"

/// What `hcclsim run --numerics` prints beside the timed run: training step by step, and how exact the reductions were.
/// Figures that depend on this computer (wall time, memory) are not part of it, so the same bytes come from any number
/// of workers.
namespace hcclsim::cli {

struct NumericsIteration {
  std::uint64_t iteration = 0;  ///< from 1 on through all resumed runs
  double loss = 0;              ///< mean over all replicas, without loss scale
  double accuracy = 0;          ///< fraction of the step's samples whose largest logit is the label
  double gradient_norm = 0;     ///< of the reduced gradient, before clipping
  double learning_rate = 0;
  std::optional<double> loss_scale{};  ///< none: no loss scaling
  bool overflow = false;               ///< a number left the range of the type on the wire, or of rounded operators
  bool skipped = false;                ///< for that the update was left out
  Seconds step_time = 0;               ///< simulated: distance of iteration ends on the printed rank
};

/// How far the replicas have drifted apart.
struct ReplicaDifference {
  std::uint64_t bits = 0;
  double largest = 0;
};

/// The reduced gradient of a step against the fp64 mean (or sum) of what the ranks computed.
struct GradientError {
  std::uint64_t iteration = 0;  ///< the step, numbered as above
  double largest = 0;
  double bound = 0;             ///< of rounding in the order of the reduction, at the element of the largest
  double worst_ratio = 0;       ///< largest error/bound over all elements
  std::uint32_t additions = 0;  ///< longest chain of additions that a contribution passes through
  std::uint64_t elements = 0;
  std::uint64_t vanished = 0;    ///< elements that are zero after the reduction though the exact sum is not
  std::uint64_t overflowed = 0;  ///< elements beyond the wire's range on the way; not part of the figures above
};

/// A gradient entry against a difference quotient of the loss.
struct GradientSampleLine {
  std::string parameter;
  std::uint64_t element = 0;
  double gradient = 0;
  double quotient = 0;
  double tolerance = 0;
  std::string verdict;  ///< "agrees", "differs", "unclear"
};

struct NumericsReport {
  std::string timed_shape;     ///< "32 x 3x224x224"
  std::string timed_type;      ///< "amp O2"
  std::string computed_shape;  ///< "2 x 3x64x64"
  std::string computed_type;   ///< "fp32"
  std::string round = "none";
  std::string data;      ///< what the data source says of itself
  bool shuffle = false;  ///< epochs are shuffled
  std::uint64_t seed = 0;
  bool gradients_mean = true;
  std::uint32_t requested = 0;                ///< iterations asked for
  std::vector<NumericsIteration> iterations;  ///< those that were done
  std::optional<ReplicaDifference> replicas;
  std::optional<GradientError> gradient_error;
  std::vector<GradientSampleLine> gradient_samples;  ///< of --check-gradients
  std::string loaded;                                ///< checkpoint; empty: none
  std::string saved;
};

[[nodiscard]] std::string numerics_text(const NumericsReport& report);
[[nodiscard]] Json numerics_json(const NumericsReport& report);
/// One row per iteration; the whole output of --format csv.
[[nodiscard]] std::string numerics_csv(const NumericsReport& report);

}  // namespace hcclsim::cli
