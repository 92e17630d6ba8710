#include "cli/numerics_run.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "cli/draw/svg_chart.hpp"
#include "cli/numeric_shape.hpp"
#include "cli/training_loop.hpp"
#include "device/numerics/loss_scale.hpp"
#include "hccl/training/numerics/gradient_check.hpp"
#include "hccl/training/numerics/trainer.hpp"

namespace hcclsim::cli {
namespace {

/// Parameters that --check-gradients looks at.
constexpr std::uint32_t checked_parameters = 10;

using device::LossScaler;

device::Overflow overflow_of(OverflowRule rule, const device::Soc& soc) {
  if (rule == OverflowRule::automatic) {
    return soc.generation == device::Generation::a1 ? device::Overflow::saturate : device::Overflow::infinity;
  }
  return rule == OverflowRule::saturate ? device::Overflow::saturate : device::Overflow::infinity;
}

Bytes memory_limit(const NumericsOptions& options) {
  if (options.memory_limit.has_value()) return *options.memory_limit;
  const std::ifstream file("/proc/meminfo");
  std::ostringstream text;
  text << file.rdbuf();
  return default_memory_limit(text.str());
}

/// Segments and Schedules are those of the timed network: another size of image must not change its parameters.
void require_same_parameters(const models::Graph& graph, const models::Program& program) {
  for (const models::Gradient& gradient : program.gradients) {
    const models::Parameter& parameter = graph.parameters.at(gradient.parameter);
    if (parameter.elements == gradient.elements) continue;
    bad_input("option",
              "{} computed at {}: {} has {} elements, but {} in the timed network; give --numeric-input the size of "
              "--input",
              graph.title, shape_text(graph), parameter.name, parameter.elements, gradient.elements);
  }
}

hccl::TrainerOptions trainer_options(const RunOptions& options, const TimedRun& timed, const models::Graph& graph) {
  const NumericsOptions& numerics = options.numerics;
  hccl::TrainerOptions out;
  out.workers = numerics.workers;
  out.memory_limit = memory_limit(numerics);
  out.gradients_mean = numerics.gradients_mean;
  out.optimizer = numerics.optimizer;
  out.learning_rate = numerics.learning_rates();
  out.loss_scale = LossScaler::parse(options.loss_scale);
  out.clip_norm = options.clip_norm;
  out.computation.compute = numerics.compute;
  out.computation.round = numerics.round;
  out.computation.overflow = overflow_of(numerics.overflow, timed.soc);
  out.computation.label_smoothing = static_cast<float>(numerics.label_smoothing);
  out.data =
      numerics.data.empty() ? fmt::format("synthetic:{}", std::uint64_t{timed.npus} * graph.batch()) : numerics.data;
  out.shuffle = numerics.shuffle;
  out.seed = numerics.seed;
  return out;
}

/// Simulated duration of an iteration: since the one before ended, the first since it started.
Seconds step_time(std::span<const hccl::IterationPoints> iterations, std::size_t index) {
  const hccl::IterationPoints& points = iterations[index];
  return points.iteration_end - (index == 0 ? points.fp_start : iterations[index - 1].iteration_end);
}

std::string_view name_of(hccl::SampleVerdict verdict) {
  switch (verdict) {
    case hccl::SampleVerdict::agrees:
      return "agrees";
    case hccl::SampleVerdict::differs:
      return "differs";
    case hccl::SampleVerdict::unclear:
      return "unclear";
  }
  internal_error("unknown verdict {}", static_cast<int>(verdict));
}

std::vector<GradientSampleLine> gradient_samples(hccl::Trainer& trainer) {
  std::vector<GradientSampleLine> lines;
  for (const hccl::GradientSample& sample : trainer.gradient_samples(checked_parameters)) {
    lines.push_back({sample.parameter, sample.element, sample.gradient, sample.quotient, sample.tolerance,
                     std::string(name_of(sample.verdict))});
  }
  return lines;
}

NumericsReport describe(const RunOptions& options, const TimedRun& timed, const hccl::Trainer& trainer) {
  const NumericsOptions& numerics = options.numerics;
  NumericsReport report;
  report.timed_shape = shape_text(timed_graph(options));
  report.timed_type = fmt::format("amp {}", models::name_of(options.amp));
  report.computed_shape = shape_text(trainer.computation().graph());
  report.computed_type = hcclsim::name_of(numerics.compute);
  if (numerics.round.has_value()) report.round = hcclsim::name_of(*numerics.round);
  report.data = trainer.data().describe();
  report.shuffle = trainer.shuffles();
  report.seed = numerics.seed;
  report.gradients_mean = numerics.gradients_mean;
  report.requested = static_cast<std::uint32_t>(timed.iterations.size());
  report.loaded = numerics.load;
  return report;
}

/// Peak memory of this process so far.
Bytes peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  constexpr Bytes kibibyte = 1024;
  return static_cast<Bytes>(usage.ru_maxrss) * kibibyte;
}

/// The loop with a trainer's steps.
TrainingLoop loop_of(const RunOptions& options, const TimedRun& timed, hccl::Trainer& trainer, NumericsReport& report) {
  TrainingLoop loop;
  loop.iterations = report.requested;
  loop.save_every = options.numerics.save_every;
  const bool scaled = LossScaler::parse(options.loss_scale).kind() != LossScaler::Kind::none;
  loop.step = [&trainer, &report, timed, scaled, done = std::size_t{0}](bool checked) mutable {
    const hccl::IterationFigures figures = trainer.step(checked);
    const NumericsIteration iteration{.iteration = figures.iteration + 1,
                                      .loss = figures.loss,
                                      .accuracy = figures.accuracy,
                                      .gradient_norm = figures.gradient_norm,
                                      .learning_rate = figures.learning_rate,
                                      .loss_scale = scaled ? std::optional(figures.loss_scale) : std::nullopt,
                                      .overflow = figures.overflow,
                                      .skipped = figures.skipped,
                                      .step_time = step_time(timed.iterations, done++)};
    // The last check counts, but a later one does not make up for a wrong reduction.
    const bool wrong = report.gradient_error.has_value() && report.gradient_error->worst_ratio > 1;
    if (checked && !wrong) {
      const hccl::ReductionCheck& check = trainer.reduction_check();
      report.gradient_error =
          GradientError{iteration.iteration, check.largest_difference, check.bound,    check.worst_ratio,
                        check.additions,     check.elements,           check.vanished, check.overflowed};
    }
    return iteration;
  };
  if (!options.numerics.save.empty()) {
    loop.save = [&trainer, &report, &options] {
      trainer.save(options.numerics.save);
      report.saved = options.numerics.save;
    };
  }
  return loop;
}

}  // namespace

NumericsFiles::NumericsFiles(const NumericsOptions& options) {
  if (!options.loss_plot.empty()) loss_plot_.emplace_back(options.loss_plot);
  // Opened and dropped: checkpoints are written by the trainer, more than once.
  if (!options.save.empty()) static_cast<void>(OutputFile(options.save));
}

void NumericsFiles::plot(const NumericsReport& report, const std::string& title) {
  if (loss_plot_.empty()) return;
  ChartSeries loss{"loss", {}};
  for (const NumericsIteration& iteration : report.iterations) {
    loss.points.emplace_back(static_cast<double>(iteration.iteration), iteration.loss);
  }
  loss_plot_.front().write(svg_line_chart({title, "iteration", "loss", {std::move(loss)}, true}));
}

void NumericsFiles::commit() {
  for (OutputFile& file : loss_plot_) file.commit();
}

NumericsReport run_numerics(const RunOptions& options, const TimedRun& timed, NumericsSession& session) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  models::Graph graph = numeric_graph(options, timed.npus);
  require_same_parameters(graph, *timed.plan.roles.front().program);
  const hccl::TrainerOptions how = trainer_options(options, timed, graph);
  hccl::Trainer trainer(std::move(graph), timed.plan, how);
  if (!options.numerics.load.empty()) trainer.load(options.numerics.load);

  NumericsReport report = describe(options, timed, trainer);
  if (options.numerics.check_gradients) report.gradient_samples = gradient_samples(trainer);
  report.iterations = run_training(loop_of(options, timed, trainer, report), session.progress, session.interruption);
  if (!report.iterations.empty()) {
    const hccl::ReplicaCheck replicas = trainer.replica_check();
    report.replicas = ReplicaDifference{replicas.differing_bits, replicas.largest_difference};
  }
  if (session.tells_effort) {
    fmt::print(stderr, "Computed in {:.2f} s with {} workers, peak memory {:.2f} GB\n",
               std::chrono::duration<double>(Clock::now() - start).count(), trainer.workers(),
               static_cast<double>(peak_memory()) / giga);
  }
  return report;
}

void require_exact(const NumericsReport& report) {
  const auto fail = [](const char* kind, const std::string& message) {
    throw Error(ErrorCode::check_failed, kind, message);
  };
  if (report.replicas.has_value() && report.replicas->bits > 0) {
    fail("replicas", fmt::format("the replicas differ in {} bits; they must be equal", report.replicas->bits));
  }
  if (report.gradient_error.has_value() && report.gradient_error->worst_ratio > 1) {
    fail("reduction",
         fmt::format("a reduced gradient is {:.3g} times farther from the exact one than rounding explains",
                     report.gradient_error->worst_ratio));
  }
  const auto& samples = report.gradient_samples;
  const auto wrong =
      std::find_if(samples.begin(), samples.end(), [](const auto& sample) { return sample.verdict == "differs"; });
  if (wrong != samples.end()) {
    fail("gradients", fmt::format("element {} of {} has the gradient {:.6g}, but finite differences give {:.6g}",
                                  wrong->element, wrong->parameter, wrong->gradient, wrong->quotient));
  }
}

}  // namespace hcclsim::cli
