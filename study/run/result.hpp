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
#include "study/files/profile/back_test.hpp"
#include "study/files/profile/import.hpp"
#include "study/platform/assumptions.hpp"
#include "study/platform/explanation.hpp"
#include "study/platform/link_report.hpp"
#include "study/platform/link_sources.hpp"
#include "study/platform/routing_spread.hpp"
#include "study/run/advice.hpp"
#include "study/run/compression_result.hpp"
#include "study/run/experiment/host_work.hpp"
#include "study/run/experiment/loaded_run.hpp"
#include "study/run/goodput.hpp"
#include "study/run/numerics/numerics_result.hpp"
#include "study/run/parallel_result.hpp"
#include "study/run/split_search/fusion_search.hpp"

/// What a run gives. Dates are seconds since fp_start of the last iteration on the rank whose figures were asked for.
namespace hcclsim::study {

/// What further simulations say of a run; absent where none was run.
struct Comparison {
  std::optional<Seconds> one_npu_step;
  std::optional<Seconds> other_hcom_parallel_step;  ///< with hcom_parallel turned
  std::optional<SplitAdvice> advice;
  std::vector<Trial> trials;  ///< other splits, the best first; run with hcom_parallel on
  /// Where stages or shared parameters leave no split to choose: rules of fusion, the best first, and that of the run.
  struct Fusions {
    std::vector<FusionTrial> trials;
    FusionTrial given;
  };
  std::optional<Fusions> fusions;
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
  /// Null: nothing is sent before the first step.
  [[nodiscard]] const hccl::Plan* start_up_plan() const { return start_up.has_value() ? &start_up->plan : nullptr; }
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
