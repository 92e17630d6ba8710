#include "study/run/comparisons.hpp"

#include <utility>

#include "hccl/parallel/advice.hpp"
#include "hccl/parallel/split.hpp"

namespace hcclsim::study {
namespace {

/// Simulates with these options and link values in a child that returns the step time.
ChildOf<Seconds> step_in_child(Experiment& experiment, hccl::TrainingOptions options,
                               sim::LinkValues values = sim::LinkValues::used) {
  return ChildOf<Seconds>([&experiment, options = std::move(options), values] {
    experiment.cluster.use(values);
    return experiment.simulate(options).step_times[options.rank];
  });
}

/// What runs after each gradient's allreduce and beside the others: its checks if there are any, because updates then
/// wait for all of them, else its update.
std::vector<Seconds> times_after_reduction(const models::Program& program) {
  std::vector<Seconds> times(program.gradients.size(), 0);
  const models::Phase first = program.once_per_step().front().phase;
  for (const models::Kernel& kernel : program.once_per_step()) {
    if (kernel.phase == first && kernel.gradient != models::no_gradient) times[kernel.gradient] += kernel.duration;
  }
  return times;
}

/// End of what depends on the split. What follows the checks of gradients takes the same time after every split.
Seconds tail_end(const models::Program& program, const hccl::StepView& view) {
  if (!view.checks.has_value()) return view.iteration_end;
  Seconds factor = 0;
  for (const models::Kernel& kernel : program.once_per_step()) {
    if (kernel.gradient == models::no_gradient) factor += kernel.duration;
  }
  return view.checks->kernels_end - factor;
}

/// The run with hcom_parallel on, as far as advice needs it.
struct OverlappedStep {
  std::vector<hccl::SegmentTimes> segments;
  std::vector<Seconds> ready;
  Seconds bp_end = 0;
  Seconds tail_end = 0;
  Seconds step_time = 0;
};

OverlappedStep overlapped_step(Experiment& experiment, const hccl::TrainingOptions& options) {
  const hccl::TimedStep step = experiment.simulate(options);
  const auto view = hccl::StepView::of(step.plan, step.trace, options.rank);
  OverlappedStep overlapped{.segments = {},
                            .ready = view.gradient_ready,
                            .bp_end = view.bp_end,
                            .tail_end = tail_end(*experiment.program, view),
                            .step_time = step.step_times[options.rank]};
  for (const hccl::SegmentFigures& segment : view.segments) {
    const bool waited = step.bottlenecks[segment.collective].kind == hccl::BottleneckKind::late_rank;
    overlapped.segments.push_back({segment.segment, segment.bytes, segment.start, segment.end, waited});
  }
  return overlapped;
}

}  // namespace

Comparisons::Comparisons(Experiment& experiment) : experiment_(experiment) {
  const hccl::TrainingOptions& options = experiment.training;
  if (options.npus == 1) return;
  slowest_.emplace(step_in_child(experiment, options, sim::LinkValues::low));
  fastest_.emplace(step_in_child(experiment, options, sim::LinkValues::high));
  hccl::TrainingOptions alone = options;
  alone.npus = 1;
  alone.rank = 0;
  alone.allreduce = hccl::Algorithm::automatic;  // one NPU has nothing to reduce
  alone.levels.clear();
  alone.skew = {};  // an NPU as it should be
  one_npu_.emplace(step_in_child(experiment, alone));
  if (options.hcom_parallel) {
    hccl::TrainingOptions serial = options;
    serial.hcom_parallel = false;
    serial_.emplace(step_in_child(experiment, serial));
  }
  start_trials();
}

/// Simulates with hcom_parallel on, takes the split guide's advice from that, and starts the splits that it suggests.
void Comparisons::start_trials() {
  hccl::TrainingOptions options = experiment_.training;
  options.hcom_parallel = true;
  const OverlappedStep step = run_in_child([&] { return overlapped_step(experiment_, options); });
  parallel_step_ = step.step_time;
  advice_ = hccl::advise_split({step.segments, experiment_.gradient_sizes, step.ready, step.bp_end,
                                times_after_reduction(*experiment_.program), step.tail_end});
  for (const std::vector<double>& percentages : advice_->trials) {
    options.segments =
        hccl::segments_from_last_indices(hccl::last_indices_by_size(percentages, experiment_.gradient_sizes));
    trials_.push_back({percentages, step_in_child(experiment_, options)});
  }
}

Comparison Comparisons::finish() {
  Comparison comparison;
  if (!advice_.has_value()) return comparison;
  comparison.slowest_step = slowest_->result();
  comparison.fastest_step = fastest_->result();
  comparison.one_npu_step = one_npu_->result();
  comparison.other_hcom_parallel_step = serial_.has_value() ? serial_->result() : parallel_step_;
  comparison.advice = advice_;
  for (TrialRun& trial : trials_) comparison.trials.push_back({trial.percentages, trial.child.result()});
  return comparison;
}

}  // namespace hcclsim::study
