#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/hbm.hpp"
#include "hccl/training/step_view.hpp"
#include "hccl/training/training.hpp"
#include "models/program.hpp"
#include "study/divergence.hpp"
#include "study/experiment/host_work.hpp"
#include "study/experiment/loaded_run.hpp"
#include "study/explanation.hpp"
#include "study/fabric/routing_spread.hpp"
#include "study/goodput/goodput.hpp"
#include "study/platform/link_report.hpp"
#include "study/platform/link_sources.hpp"
#include "study/profile/back_test.hpp"
#include "study/profile/import.hpp"
#include "study/run/advice.hpp"
#include "study/run/compression_result.hpp"
#include "study/run/parallel_result.hpp"
#include "study/uncertainty/assumptions.hpp"

/// What a run gives. Dates are seconds since fp_start of the last iteration on the rank whose figures were asked for.
namespace hcclsim::study {

/// What further simulations say of a run; absent where none was run.
struct Comparison {
  std::optional<Seconds> one_npu_step;
  std::optional<Seconds> other_hcom_parallel_step;  ///< with hcom_parallel turned
  std::optional<SplitAdvice> advice;
  std::vector<Trial> trials;  ///< other splits, the best first; run with hcom_parallel on
};

/// --- Real numbers, beside the timed run. Figures that depend on this computer (wall time, memory) stand apart, so
/// that the rest is the same for any number of workers.

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

/// When the phases of a rank's last iteration begin and end, in seconds since its fp_start.
struct RankPhases {
  Seconds bp_end = 0;
  Seconds communication_start = 0;  ///< of the first allreduce
  Seconds communication_end = 0;    ///< of the last one
  Seconds exposed = 0;              ///< communication beside which nothing is computed
};

/// When gradients of a stage are ready on the rank with the place of the printed one, in seconds since the fp_start of
/// the printed rank.
struct GradientDates {
  std::shared_ptr<const models::Program> program;  ///< of the stage
  std::vector<Seconds> ready;                      ///< of its gradients
};

/// Steps that differ, by their distances of iteration ends. A percentile is the least of them that so many do not
/// exceed.
struct StepSpread {
  std::size_t steps = 0;
  Seconds least = 0;
  Seconds p50 = 0;
  Seconds p99 = 0;
  Seconds most = 0;
};

/// Steps while links and NPUs fail.
struct FaultResult {
  std::vector<std::string> texts;    ///< as they were given
  std::vector<Seconds> steps;        ///< of the printed rank, each from the end of the one before to its own
  std::optional<Seconds> without{};  ///< the step time without faults, if it was simulated
};

/// What ranks send each other once, before the first step.
struct StartUpResult {
  Bytes broadcast = 0;      ///< by rank 0 of each stage's replicas to the others: its weights in fp32, of all stages
  bool all_weights = true;  ///< … but for those of which ranks keep parts, if this is false
  Bytes copied = 0;         ///< by owners of parameters that several stages have, for each position in a stage
  Seconds time = 0;
  hccl::Plan plan;
};

/// What a computation with real numbers took of this computer.
struct Effort {
  double seconds = 0;
  unsigned workers = 0;
  Bytes peak_memory = 0;
};

/// With what is known of the run and its platform.
struct RunResult : Comparison, RunFacts, PlatformFacts {
  // What was simulated
  Rank rank = 0;  ///< whose figures these are
  /// NPUs that reduce gradients with each other, and the one of them whose step is theirs; `rank` in its own group.
  struct Replicas {
    Rank npus = 0;
    Rank rank = 0;
  };
  std::vector<Replicas> replicas;
  std::optional<StartUpResult> start_up;
  std::optional<FaultResult> faults;
  std::optional<CompressionResult> compression;  ///< where it was compared with plain allreduces
  std::string network;                           ///< "simgrid" or "fluid"
  device::HbmAccount hbm;                        ///< of the printed rank
  Bytes hbm_capacity = 0;                        ///< of one NPU
  BytesPerSecond shared_hbm = 0;  ///< what kernels, copies and transfers of an NPU share; 0: each has it to itself

  // What came out
  hccl::TimedStep step;
  hccl::StepView view;
  std::vector<RankPhases> phases;                ///< of every rank, if they were asked for
  std::vector<GradientDates> gradient_dates;     ///< of every stage, if they were asked for
  std::optional<ProfileResult> profile;          ///< where measurements were given
  std::vector<ExplainedCollective> explanation;  ///< where it was asked for
  std::optional<NumericsResult> numerics;        ///< of RunSpec::numerics
  std::optional<LinkReport> links;               ///< in the last iteration; none unless asked for

  std::optional<ParallelResult> parallel;
  HostFigures host;                      ///< what the host of the rank did
  std::optional<Throughput> throughput;  ///< of a transformer
  std::optional<GoodputResult> goodput;  ///< of RunSpec::failures

  std::optional<Uncertainty> uncertainty;  ///< of the step time, where it was asked for
  std::optional<RoutingSpread> routing;    ///< of the step time, under routing ecmp

  // Remarks
  std::vector<LinkSource> link_sources;  ///< of the kinds of links that are used

  /// Of all groups of replicas, each by its own step.
  [[nodiscard]] double images_per_second() const;
  [[nodiscard]] Seconds step_time() const { return step.step_times[rank]; }
  /// The NPU that needs most HBM, the first of several.
  struct Fullest {
    Rank rank = 0;
    device::HbmAccount hbm;
    bool all_alike = true;  ///< no NPU needs less
  };
  [[nodiscard]] Fullest fullest() const;
  /// Of all steps but the first, which starts from rest; none if they are equal (without jitter) or fewer than two.
  [[nodiscard]] std::optional<StepSpread> spread() const;
  /// What took most of the time of a segment's allreduce.
  [[nodiscard]] const std::string& bottleneck_of(const hccl::SegmentFigures& segment) const {
    return step.bottlenecks[segment.collective].name;
  }
  /// The parameters of a segment, as runs in parameter order.
  [[nodiscard]] std::vector<hccl::ParameterRange> parameters_of(hccl::Segment segment) const;
};

}  // namespace hcclsim::study
