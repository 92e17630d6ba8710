#include "study/run/numerics.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <span>
#include <sstream>

#include "base/error.hpp"
#include "device/numerics/loss_scale.hpp"
#include "hccl/training/numerics/gradient_check.hpp"
#include "hccl/training/numerics/trainer.hpp"
#include "study/run/numeric_shape.hpp"

namespace hcclsim::study {
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

Bytes memory_limit(const NumericsSpec& spec) {
  if (spec.memory_limit.has_value()) return *spec.memory_limit;
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

hccl::TrainerOptions trainer_options(const RunSpec& spec, const Experiment& experiment, const models::Graph& graph) {
  const NumericsSpec& numerics = *spec.numerics;
  hccl::TrainerOptions out;
  out.workers = numerics.workers;
  out.memory_limit = memory_limit(numerics);
  out.gradients_mean = numerics.gradients_mean;
  out.optimizer = numerics.optimizer;
  out.optimizer.rule = spec.optimizer;
  out.learning_rate = numerics.learning_rate;
  out.loss_scale = spec.loss_scale;
  out.clip_norm = spec.clip_norm;
  out.computation.compute = numerics.compute;
  out.computation.round = numerics.round;
  out.computation.overflow = overflow_of(numerics.overflow, experiment.soc);
  out.computation.label_smoothing = static_cast<float>(numerics.label_smoothing);
  out.data = numerics.data.empty() ? fmt::format("synthetic:{}", std::uint64_t{experiment.npus} * graph.batch())
                                   : numerics.data;
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

NumericsResult describe(const RunSpec& spec, const RunResult& run, const hccl::Trainer& trainer) {
  const NumericsSpec& numerics = *spec.numerics;
  NumericsResult result;
  result.timed_shape = shape_text(models::make_model(spec.model));
  result.timed_type = fmt::format("amp {}", models::name_of(spec.amp));
  result.computed_shape = shape_text(trainer.computation().graph());
  result.computed_type = hcclsim::name_of(numerics.compute);
  if (numerics.round.has_value()) result.round = hcclsim::name_of(*numerics.round);
  result.data = trainer.data().describe();
  result.shuffle = trainer.shuffles();
  result.seed = numerics.seed;
  result.gradients_mean = numerics.gradients_mean;
  result.requested = static_cast<std::uint32_t>(run.view.iterations.size());
  result.loaded = numerics.load;
  return result;
}

/// Peak memory of this process so far.
Bytes peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  constexpr Bytes kibibyte = 1024;
  return static_cast<Bytes>(usage.ru_maxrss) * kibibyte;
}

/// The loop with a trainer's steps.
TrainingLoop loop_of(const RunSpec& spec, std::span<const hccl::IterationPoints> iterations, hccl::Trainer& trainer,
                     NumericsResult& report) {
  TrainingLoop loop;
  loop.iterations = report.requested;
  loop.save_every = spec.numerics->save_every;
  const bool scaled = spec.loss_scale.kind() != LossScaler::Kind::none;
  loop.step = [&trainer, &report, iterations, scaled, done = std::size_t{0}](bool checked) mutable {
    const hccl::IterationFigures figures = trainer.step(checked);
    const NumericsIteration iteration{.iteration = figures.iteration + 1,
                                      .loss = figures.loss,
                                      .accuracy = figures.accuracy,
                                      .gradient_norm = figures.gradient_norm,
                                      .learning_rate = figures.learning_rate,
                                      .loss_scale = scaled ? std::optional(figures.loss_scale) : std::nullopt,
                                      .overflow = figures.overflow,
                                      .skipped = figures.skipped,
                                      .step_time = step_time(iterations, done++)};
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
  if (!spec.numerics->save.empty()) {
    loop.save = [&trainer, &report, &spec] {
      trainer.save(spec.numerics->save);
      report.saved = spec.numerics->save;
    };
  }
  return loop;
}

}  // namespace

Effort compute_numerics(const RunSpec& spec, const Experiment& experiment, const TrainingWatch& watch,
                        RunResult& result) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  models::Graph graph = numeric_graph(spec, experiment.npus);
  require_same_parameters(graph, *result.program);
  const hccl::TrainerOptions how = trainer_options(spec, experiment, graph);
  hccl::Trainer trainer(std::move(graph), result.step.plan, how);
  if (!spec.numerics->load.empty()) trainer.load(spec.numerics->load);

  NumericsResult& numerics = result.numerics.emplace(describe(spec, result, trainer));
  if (spec.numerics->check_gradients) numerics.gradient_samples = gradient_samples(trainer);
  numerics.iterations = run_training(loop_of(spec, result.view.iterations, trainer, numerics), watch);
  if (!numerics.iterations.empty()) {
    const hccl::ReplicaCheck replicas = trainer.replica_check();
    numerics.replicas = ReplicaDifference{replicas.differing_bits, replicas.largest_difference};
  }
  return {std::chrono::duration<double>(Clock::now() - start).count(), trainer.workers(), peak_memory()};
}

void require_exact(const NumericsResult& report) {
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

}  // namespace hcclsim::study
