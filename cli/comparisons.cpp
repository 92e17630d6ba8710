#include "cli/comparisons.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/json.hpp"
#include "hccl/parallel/advice.hpp"
#include "hccl/parallel/split.hpp"

namespace hcclsim::cli {
namespace {

hccl::TimedStep simulate(const Setting& setting, const hccl::TrainingOptions& options) {
  return simulate_training(setting.cluster, setting.program, setting.soc, setting.costs, options);
}

/// Simulates with these options and link values in a child that returns the step time.
Child step_in_child(const Setting& setting, hccl::TrainingOptions options,
                    sim::LinkValues values = sim::LinkValues::used) {
  options.traced.clear();
  options.trace_tasks = false;
  return Child([&setting, options = std::move(options), values] {
    setting.cluster.use(values);
    return fmt::format("{}", simulate(setting, options).step_times[options.rank]);
  });
}

Seconds step_of(Child& child) { return std::stod(child.result()); }

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

/// The run with hcom_parallel on, as far as advice needs it; what the child sends.
std::string overlapped_step(const Setting& setting, const hccl::TrainingOptions& options) {
  const hccl::TimedStep step = simulate(setting, options);
  const auto view = hccl::StepView::of(step.plan, step.trace, options.rank);
  Json segments = Json::array();
  for (const hccl::SegmentFigures& segment : view.segments) {
    segments.push_back({segment.segment.first, segment.segment.last, segment.bytes, segment.start, segment.end,
                        step.bottlenecks[segment.collective].kind == hccl::BottleneckKind::late_rank});
  }
  return Json{{"segments", segments},
              {"ready", view.gradient_ready},
              {"bp_end", view.bp_end},
              {"tail_end", tail_end(*setting.program, view)},
              {"step_time", step.step_times[options.rank]}}
      .dump();
}

hccl::SplitAdvice advise(const Json& step, const std::vector<Bytes>& sizes, const std::vector<Seconds>& updates) {
  std::vector<hccl::SegmentTimes> segments;
  for (const Json& s : step["segments"]) {
    segments.push_back({{s[0].get<std::uint32_t>(), s[1].get<std::uint32_t>()},
                        s[2].get<Bytes>(),
                        s[3].get<double>(),
                        s[4].get<double>(),
                        s[5].get<bool>()});
  }
  const auto ready = step["ready"].get<std::vector<Seconds>>();
  return hccl::advise_split(
      {segments, sizes, ready, step["bp_end"].get<double>(), updates, step["tail_end"].get<double>()});
}

}  // namespace

Comparisons::Comparisons(const Setting& setting) : setting_(setting) {
  if (setting.options.npus == 1) return;
  slowest_.emplace(step_in_child(setting, setting.options, sim::LinkValues::low));
  fastest_.emplace(step_in_child(setting, setting.options, sim::LinkValues::high));
  hccl::TrainingOptions alone = setting.options;
  alone.npus = 1;
  alone.rank = 0;
  alone.allreduce = hccl::Algorithm::automatic;  // one NPU has nothing to reduce
  alone.levels.clear();
  alone.skew = {};  // an NPU as it should be
  one_npu_.emplace(step_in_child(setting, alone));
  if (setting.options.hcom_parallel) {
    hccl::TrainingOptions serial = setting.options;
    serial.hcom_parallel = false;
    serial_.emplace(step_in_child(setting, serial));
  }
  start_trials();
}

/// Simulates with hcom_parallel on, takes the split guide's advice from that, and starts the splits that it suggests.
void Comparisons::start_trials() {
  hccl::TrainingOptions options = setting_.options;
  options.hcom_parallel = true;
  options.traced.clear();
  options.trace_tasks = false;
  const Json step = Json::parse(run_in_child([&] { return overlapped_step(setting_, options); }));
  const std::vector<Bytes> sizes = setting_.program->gradient_sizes();
  parallel_step_ = step["step_time"].get<double>();
  advice_ = advise(step, sizes, times_after_reduction(*setting_.program));
  for (const std::vector<double>& percentages : advice_->trials) {
    options.segments = hccl::segments_from_last_indices(hccl::last_indices_by_size(percentages, sizes));
    trials_.push_back({percentages, step_in_child(setting_, options)});
  }
}

void Comparisons::finish(RunReport& report) {
  if (!advice_.has_value()) return;
  report.slowest_step = step_of(*slowest_);
  report.fastest_step = step_of(*fastest_);
  report.one_npu_step = step_of(*one_npu_);
  report.other_hcom_parallel_step = serial_.has_value() ? step_of(*serial_) : parallel_step_;
  report.advice = advice_;
  for (TrialRun& trial : trials_) report.trials.push_back({trial.percentages, step_of(trial.child)});
}

}  // namespace hcclsim::cli
