#include "study/run/numerics/numerics.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "device/numerics/loss_scale.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "hccl/training/numerics/checkpoint.hpp"
#include "hccl/training/numerics/gradient_check.hpp"
#include "hccl/training/numerics/trainer.hpp"
#include "study/run/experiment/sharding/sharding.hpp"
#include "study/run/experiment/stages.hpp"
#include "study/run/numerics/numeric_shape.hpp"

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
void require_same_parameters(const models::Graph& whole, const models::Graph& stage, const models::Program& program) {
  for (const models::Gradient& gradient : program.gradients) {
    const models::Parameter& parameter = stage.parameters.at(gradient.parameter);
    if (parameter.elements == gradient.elements) continue;
    bad_input("option",
              "{} computed at {}: {} has {} elements, but {} in the timed network; give --numeric-input the size of "
              "--input",
              whole.title, shape_text(whole), parameter.name, parameter.elements, gradient.elements);
  }
}

/// What each stage of the Plan computes of a network.
std::vector<hccl::ShardedGraph> graphs_of_stages(const RunSpec& spec, const Experiment& experiment,
                                                 const models::Graph& graph) {
  std::vector<std::string> notes;  // the timed run has given them
  ParallelSpec parallel = spec.parallel;
  parallel.operators.expert_skew = 0;  // rows go where their gates say, into places that all experts have
  const hccl::PipelineShape& shape = experiment.training.step.shape;
  const hccl::ShardedGraph network = shard_network(graph, parallel, shape, spec.devices(experiment.npus), notes);
  return cut_into_stages(network, parallel, shape, experiment.layers_of_parts);
}

hccl::TrainerOptions trainer_options(const RunSpec& spec, const Experiment& experiment, const models::Graph& graph) {
  const NumericsSpec& numerics = *spec.numerics;
  hccl::TrainerOptions out;
  out.workers = numerics.workers;
  out.memory_limit = memory_limit(numerics);
  out.gradients_mean = numerics.gradients_mean;
  out.mean_again = numerics.mean_again;
  out.loss_repeated_mean = numerics.loss_repeated_mean;
  out.mirrors_mean = spec.is_graph_parallel() && numerics.gradients_mean;
  if (!spec.is_graph_parallel() && !numerics.gradients_mean) out.added_losses = experiment.replicas;
  out.optimizer = numerics.optimizer;
  out.optimizer.rule = spec.optimizer;
  out.learning_rate = numerics.learning_rate;
  out.loss_scale = spec.loss_scale;
  out.clip_norm = spec.clip_norm;
  out.computation.compute = numerics.compute;
  out.computation.round = numerics.round;
  out.computation.overflow = overflow_of(numerics.overflow, experiment.soc);
  out.computation.label_smoothing = static_cast<float>(numerics.label_smoothing);
  const Rank readers = spec.parallel.operators.cuts() ? 1 : experiment.replicas;  // of whole batches
  out.data = numerics.data.empty()
                 ? fmt::format("synthetic:{}", std::uint64_t{readers} * experiment.batch.micro_batches * graph.batch())
                 : numerics.data;
  const auto maker = [&experiment] {
    return hccl::schedule_maker(experiment.cluster, experiment.soc, experiment.training.step);
  };
  out.make_schedule = [maker, keeping = maker()](const hccl::Communicator& group, const hccl::Operation& operation) {
    // Rows for experts that drop none have other counts in every step: nobody will ask for their schedules again.
    return operation.counts.empty() ? keeping(group, operation) : maker()(group, operation);
  };
  out.shuffle = numerics.shuffle;
  out.seed = numerics.seed;
  out.own_weights = spec.parameter_broadcast && numerics.load.empty();
  if (numerics.check_all_reductions) out.checked_part = hccl::CheckedPart::all;
  return out;
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

/// The trainer in the largest shape that fits into memory; `too_large` becomes the shape that was to be, if it does
/// not.
std::unique_ptr<hccl::Trainer> make_trainer(const RunSpec& spec, const Experiment& experiment, const hccl::Plan& plan,
                                            std::string& too_large) {
  const models::Graph wanted = numeric_graph(spec, experiment.batch, experiment.replicas);
  const std::vector<hccl::ShardedGraph> stages = graphs_of_stages(spec, experiment, wanted);
  for (const hccl::Role& role : plan.roles) {  // of which a stage has several where experts are used unevenly
    require_same_parameters(wanted, stages[role.stage].graph, *role.program);
  }
  std::vector<models::Graph> graphs = smaller_graphs(spec, experiment.batch, wanted, experiment.replicas);
  graphs.insert(graphs.begin(), wanted);
  for (const models::Graph& graph : graphs) {
    const hccl::TrainerOptions how = trainer_options(spec, experiment, graph);
    try {
      return std::make_unique<hccl::Trainer>(graph, graphs_of_stages(spec, experiment, graph), plan, how);
    } catch (const Error& error) {
      if (error.kind() != "memory" || &graph == &graphs.back()) throw;
      too_large = shape_text(wanted);
    }
  }
  internal_error("no shape was tried");
}

/// The same training without compression, if it is wanted.
std::unique_ptr<hccl::Trainer> plain_trainer(const RunSpec& spec, const Experiment& experiment, const hccl::Plan& plan,
                                             const hccl::Trainer& compressed) {
  if (!spec.numerics->plain_beside) return nullptr;
  if (!spec.step.compression.has_value()) bad_input("option", "--plain-beside goes with --compress: give a hook");
  if (!spec.numerics->load.empty()) {
    bad_input("option", "--plain-beside goes from the first iteration on: leave out --load");
  }
  const models::Graph& graph = compressed.graph();
  return std::make_unique<hccl::Trainer>(graph, graphs_of_stages(spec, experiment, graph), uncompressed(plan),
                                         trainer_options(spec, experiment, graph));
}

NumericsResult describe(const RunSpec& spec, const Experiment& experiment, const hccl::Trainer& trainer) {
  const NumericsSpec& numerics = *spec.numerics;
  NumericsResult result;
  models::ModelOptions timed = spec.model;
  timed.batch = experiment.batch.micro_batch;
  result.timed_shape = shape_text(models::make_model(timed));
  result.timed_type = fmt::format("amp {}", to_string(spec.precision));
  result.computed_shape = shape_text(trainer.graph());
  result.computed_type = hcclsim::name_of(numerics.compute);
  if (numerics.round.has_value()) result.round = hcclsim::name_of(*numerics.round);
  result.data = trainer.data().describe();
  result.shuffle = trainer.shuffles();
  result.seed = numerics.seed;
  result.reduced_as = experiment.program->gradient_type_text();
  const auto& gradients = experiment.program->gradients;
  if (!gradients.empty() && gradients.front().cast_back)
    result.cast_back = hcclsim::name_of(*gradients.front().cast_back);
  result.broadcast = spec.parameter_broadcast && trainer.stage(0).replicas() > 1;
  result.gradients_mean = numerics.gradients_mean;
  result.mean_again = numerics.mean_again;
  result.mirrors_mean = spec.is_graph_parallel() && numerics.gradients_mean && spec.parallel.operators.cuts();
  result.stages = static_cast<std::uint32_t>(trainer.stages());
  result.micro_batches = trainer.micro_batches();
  result.requested = spec.simulation.iterations;
  result.loaded = numerics.load;
  if (spec.step.compression.has_value()) result.compression = to_string(spec.step.compression->settings);
  return result;
}

/// Peak memory of this process so far.
Bytes peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  constexpr Bytes kibibyte = 1024;
  return static_cast<Bytes>(usage.ru_maxrss) * kibibyte;
}

/// Of training that has come to the last of these iterations.
std::optional<Divergence> divergence(std::span<const NumericsIteration> done, hccl::Trainer& trainer) {
  if (done.empty()) return std::nullopt;
  std::vector<double> losses(done.size());
  std::ranges::transform(done, losses.begin(), &NumericsIteration::loss);
  return divergence_of(losses, done.front().iteration, [&] { return trainer.weights_finite(); });
}

/// Steps of a trainer in simulated time, and their checkpoints.
class TrainingSteps {
 public:
  /// `plain`: the same training without compression, or null.
  TrainingSteps(const RunSpec& spec, TrainingClock& clock, hccl::Trainer& trainer, hccl::Trainer* plain,
                NumericsResult& report)
      : numerics_(*spec.numerics),
        scaled_(spec.loss_scale.kind() != LossScaler::Kind::none),
        clock_(clock),
        trainer_(trainer),
        plain_(plain),
        report_(report) {
    if (!numerics_.load.empty()) note_state("Process group will be set to a default group (i.e. the world size).");
  }

  [[nodiscard]] TrainingLoop loop() {
    TrainingLoop loop{.iterations = report_.requested, .save_every = numerics_.save_every};
    loop.step = [this](bool checked) { return step(checked); };
    if (!numerics_.save.empty()) loop.save = [this] { save(); };
    if (!numerics_.save_gradients.empty()) loop.save_gradients = [this] { save_gradients(); };
    return loop;
  }

 private:
  NumericsIteration step(bool checked) {
    // First the time: where it cannot be simulated, training stands where it was.
    const Seconds time = clock_.next();
    const hccl::IterationFigures figures = trainer_.step(checked);
    last_ = {.iteration = figures.iteration + 1,
             .loss = figures.loss,
             .accuracy = figures.accuracy,
             .gradient_norm = figures.gradient_norm,
             .learning_rate = figures.learning_rate,
             .loss_scale = scaled_ ? std::optional(figures.loss_scale) : std::nullopt,
             .overflow = figures.overflow,
             .skipped = figures.skipped,
             .step_time = time,
             .compression_error = figures.compression_error};
    if (plain_ != nullptr) last_.plain_loss = plain_->step(false).loss;
    ends_ = clock_.ends();
    if (hccl::CompressionHook<float>* hook = trainer_.compression(); hook != nullptr) {
      const std::vector<std::string> log = hook->take_log();
      report_.compression_log.insert(report_.compression_log.end(), log.begin(), log.end());
    } else if (checked) {
      note_check();
    }
    return last_;
  }

  /// What PowerSGDState warns of (P11.3), once. Here the group is always that of all replicas.
  void note_state(const std::string& warning) {
    hccl::CompressionHook<float>* hook = trainer_.compression();
    if (hook == nullptr || !hook->settings().is_powersgd()) return;
    std::vector<std::string>& log = report_.compression_log;
    if (std::ranges::find(log, warning) == log.end()) log.push_back(warning);
  }

  /// The last check counts, but a later one does not make up for a wrong reduction.
  void note_check() {
    if (report_.gradient_error.has_value() && report_.gradient_error->worst_ratio > 1) return;
    const hccl::ReductionCheck& check = trainer_.reduction_check();
    report_.gradient_error = GradientError{
        last_.iteration, check.largest_difference, check.bound,      check.worst_ratio, check.additions,
        check.elements,  check.vanished,           check.overflowed, check.not_numbers, check.all_elements};
  }

  void save() {
    if (!numerics_.save_diverged && divergence({&last_, 1}, trainer_).has_value()) {
      report_.save_refused = true;
      return;
    }
    trainer_.save(numerics_.save, ends_);
    note_state("Process group is not serializable and excluded from a saved state.");
    report_.save_refused = false;
    report_.saved = numerics_.save;
    report_.saved_iteration = last_.iteration;
  }

  void save_gradients() {
    if (!trainer_.has_gradients()) return;
    trainer_.save_gradients(numerics_.save_gradients);
    report_.saved_gradients = numerics_.save_gradients;
  }

  const NumericsSpec& numerics_;
  bool scaled_;
  TrainingClock& clock_;
  hccl::Trainer& trainer_;
  hccl::Trainer* plain_;
  NumericsResult& report_;
  NumericsIteration last_;
  std::vector<Seconds> ends_;  // of the last step
};

}  // namespace

SimulatedPast past_of(const NumericsSpec& spec) {
  if (spec.load.empty()) return {};
  hccl::Checkpoint file = hccl::read_checkpoint_header(spec.load);
  return {static_cast<std::uint32_t>(file.iteration), std::move(file.iteration_ends)};
}

Training compute_numerics(const Experiment& experiment, const hccl::TimedStep& step, const hccl::Plan* start_up,
                          TrainingClock& clock, const TrainingWatch& watch, NumericsResult& result) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const RunSpec& spec = experiment.spec;
  std::string too_large;
  const std::unique_ptr<hccl::Trainer> made = make_trainer(spec, experiment, step.plan, too_large);
  hccl::Trainer& trainer = *made;
  const std::unique_ptr<hccl::Trainer> plain = plain_trainer(spec, experiment, step.plan, trainer);
  result = describe(spec, experiment, trainer);
  result.too_large = std::move(too_large);
  if (spec.parameter_broadcast && start_up != nullptr) trainer.start_up(*start_up);
  if (!spec.numerics->save.empty()) trainer.require_checkpoints();
  if (!spec.numerics->load.empty()) result.changed_settings = trainer.load(spec.numerics->load);
  if (spec.numerics->check_gradients) result.gradient_samples = gradient_samples(trainer);

  if (watch.begin) watch.begin(result);
  clock.begin(step);
  TrainingSteps steps(spec, clock, trainer, plain.get(), result);
  TrainingOutcome outcome = run_training(steps.loop(), watch);
  result.iterations = std::move(outcome.iterations);
  if (outcome.failure.has_value()) result.failure = outcome.failure->what();
  result.diverged = divergence(result.iterations, trainer);
  if (!result.iterations.empty()) {
    const hccl::ReplicaCheck replicas = trainer.replica_check();
    result.replicas = ReplicaDifference{replicas.differing_bits, replicas.largest_difference};
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return {{seconds, trainer.workers(), peak_memory()}, std::move(outcome.failure)};
}

void require_exact(const NumericsResult& report) {
  const auto fail = [](const char* kind, const std::string& message) {
    throw Error(ErrorCode::check_failed, kind, message);
  };
  require_finite(report.diverged);
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
