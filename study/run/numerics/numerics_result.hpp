#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "study/run/numerics/divergence.hpp"

/// What training with real numbers gives, beside the timed run. Figures that depend on this computer (wall time,
/// memory) stand apart, so that the rest is the same for any number of workers.
namespace hcclsim::study {

struct NumericsIteration {
  std::uint64_t iteration = 0;  ///< from 1 on through all resumed runs
  double loss = 0;              ///< mean over all replicas, without loss scale
  double accuracy = 0;          ///< fraction of the step's samples whose largest logit is the label
  double gradient_norm = 0;     ///< of the reduced gradient, before clipping
  double learning_rate = 0;
  std::optional<double> loss_scale{};  ///< none: no loss scaling
  bool overflow = false;               ///< a number left the range of its type: on the wire, in rounded operators, …
  bool skipped = false;                ///< the update was left out, for gradients were not finite
  Seconds step_time = 0;               ///< simulated: distance of iteration ends on the printed rank
  std::optional<double> compression_error{};  ///< of a compression hook: ‖reduced − mean‖ / ‖mean‖
  std::optional<double> plain_loss{};         ///< of the same training without compression
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
  double bound = 0;                ///< of rounding in the order of the reduction, at the element of the largest
  double worst_ratio = 0;          ///< largest error/bound over all elements
  std::uint32_t additions = 0;     ///< longest chain of additions that a contribution passes through
  std::uint64_t elements = 0;      ///< that were compared
  std::uint64_t vanished = 0;      ///< elements that are zero after the reduction though the exact sum is not
  std::uint64_t overflowed = 0;    ///< elements beyond the wire's range on the way; not part of the figures above
  std::uint64_t not_numbers = 0;   ///< elements that were NaN before the reduction; not part of the figures above
  std::uint64_t all_elements = 0;  ///< of the gradient
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

struct NumericsResult {
  std::string timed_shape;     ///< "32 x 3x224x224"
  std::string timed_type;      ///< "amp O2"
  std::string computed_shape;  ///< "2 x 3x64x64"
  std::string computed_type;   ///< "fp32"
  std::string too_large;       ///< the shape that was to be computed, but needs more memory than it may take; or empty
  std::string round = "none";
  std::string data;      ///< what the data source says of itself
  bool shuffle = false;  ///< epochs are shuffled
  std::uint64_t seed = 0;
  bool broadcast = false;  ///< replicas drew weights of their own, and got those of rank 0 before the first step
  std::string reduced_as = "fp32";  ///< types in which gradients are reduced
  std::string cast_back{};          ///< type that they have before and after that, if it is another one
  bool gradients_mean = true;
  bool mean_again = false;    ///< gradients are divided by device_num besides
  bool mirrors_mean = false;  ///< the mean is that of the ranks that have the same of a parameter
  std::uint32_t stages = 1;
  std::uint32_t micro_batches = 1;            ///< whose losses and gradients are added up in an iteration
  std::string compression;                    ///< settings of the hook that reduces gradients; empty: none
  std::vector<std::string> compression_log;   ///< what PyTorch's hook would have logged
  std::uint32_t requested = 0;                ///< iterations asked for
  std::vector<NumericsIteration> iterations;  ///< those that were done
  std::optional<ReplicaDifference> replicas;
  std::optional<GradientError> gradient_error;
  std::vector<GradientSampleLine> gradient_samples;  ///< of --check-gradients
  std::string loaded;                                ///< checkpoint; empty: none
  std::vector<std::string> changed_settings;         ///< since that was saved: "beta2 0.999 -> 0.9"
  std::string saved;
  std::uint64_t saved_iteration = 0;   ///< after which it was saved
  std::optional<Divergence> diverged;  ///< at the end
  bool save_refused = false;           ///< a checkpoint was not written, for training had diverged
  std::string saved_gradients;         ///< file with those of the last iteration; empty: none
  std::string failure;                 ///< what ended training early or kept it from being saved; empty: nothing
};

/// What a computation with real numbers took of this computer.
struct Effort {
  double seconds = 0;
  unsigned workers = 0;
  Bytes peak_memory = 0;
};

}  // namespace hcclsim::study
