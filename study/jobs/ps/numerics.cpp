#include "study/jobs/ps/numerics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "hccl/ps/id_samples.hpp"
#include "hccl/training/numerics/trainer.hpp"
#include "study/run/numerics/numeric_shape.hpp"

namespace hcclsim::study {
namespace {

device::ComputationOptions computation_of(const NumericsSpec& numerics, const device::Soc& soc) {
  const bool saturates = numerics.overflow == OverflowRule::automatic ? soc.generation == device::Generation::a1
                                                                      : numerics.overflow == OverflowRule::saturate;
  return {.compute = numerics.compute,
          .round = numerics.round,
          .overflow = saturates ? device::Overflow::saturate : device::Overflow::infinity,
          .label_smoothing = static_cast<float>(numerics.label_smoothing)};
}

bool has_tables(const PsExperiment& made) {
  return std::ranges::any_of(made.options.parameters, [](const hccl::PsParameter& one) { return one.rows > 0; });
}

/// The network as it is computed, whose parameters must be those that are timed.
models::Graph computed_graph(const PsExperiment& made) {
  models::Graph graph = numeric_graph(made.run, made.experiment.batch, made.experiment.npus);
  for (const models::Gradient& gradient : made.experiment.program->gradients) {
    const models::Parameter& parameter = graph.parameters.at(gradient.parameter);
    if (parameter.elements == gradient.elements) continue;
    bad_input("option",
              "{} has {} elements in the shape that is computed, but {} in the timed one; give --numeric-input",
              parameter.name, parameter.elements, gradient.elements);
  }
  return graph;
}

/// Samples whose ids are those that the simulated workers look up; null without tables.
std::shared_ptr<const models::Dataset> dataset_of(const PsExperiment& made, const models::Graph& graph) {
  if (!has_tables(made)) return nullptr;
  const std::uint32_t batch = made.experiment.batch.micro_batch;
  auto samples = std::make_shared<hccl::IdSamples>(graph, batch, made.options.embeddings.ids, made.run.numerics->seed);
  if (samples->form().elements() * batch != made.options.embeddings.look_ups) {
    bad_input("unsupported", "{} looks up {} ids in a step, but a batch has {}: its real numbers are not known",
              graph.title, made.options.embeddings.look_ups, samples->form().elements() * batch);
  }
  return samples;
}

hccl::ReplayOptions replay_options(const PsExperiment& made, const models::Graph& graph,
                                   std::uint32_t checkpoint_every) {
  const NumericsSpec& numerics = *made.run.numerics;
  // Workers that are added take their samples from the same data.
  const std::uint64_t most_workers = made.experiment.npus + made.options.spare_workers.size();
  hccl::ReplayOptions how{
      .threads = numerics.workers,
      .optimizer = numerics.optimizer,
      .learning_rate = numerics.learning_rate,
      .computation = computation_of(numerics, made.experiment.soc),
      .data = numerics.data.empty() ? fmt::format("synthetic:{}", most_workers * graph.batch()) : numerics.data,
      .dataset = dataset_of(made, graph),
      .cached = made.options.embeddings.cache_rows > 0,
      .shuffle = numerics.shuffle,
      .seed = numerics.seed,
      .checkpoint_every = checkpoint_every};
  how.optimizer.rule = made.run.optimizer;
  return how;
}

std::vector<std::uint32_t> production_order(const models::Program& program) {
  std::vector<std::uint32_t> order;
  for (const models::Gradient& gradient : program.gradients) order.push_back(gradient.parameter);
  return order;
}

bool all_finite(const std::vector<std::vector<float>>& parameters) {
  return std::ranges::all_of(parameters, [](const std::vector<float>& one) {
    return std::ranges::all_of(one, [](float weight) { return std::isfinite(weight); });
  });
}

}  // namespace

std::vector<WorkersStep> steps_of_workers(std::span<const hccl::ReplayedStep> steps) {
  std::map<std::uint32_t, std::pair<WorkersStep, std::uint32_t>> by_step;
  for (const hccl::ReplayedStep& one : steps) {
    auto& [sum, workers] = by_step[one.step];
    sum.loss += one.loss;
    sum.accuracy += one.accuracy;
    sum.end = std::max(sum.end, one.end);
    ++workers;
  }
  std::vector<WorkersStep> means;
  for (const auto& [step, of_workers] : by_step) {
    const auto& [sum, workers] = of_workers;
    means.push_back({step, sum.loss / workers, sum.accuracy / workers, sum.end});
  }
  return means;
}

void require_numbers(const PsExperiment& made) {
  if (!has_tables(made)) return;
  if (!made.run.numerics->data.empty()) {
    bad_input("option",
              "--data {}: with tables of embeddings on servers samples have the ids that --ids says, and labels that "
              "follow from them; leave it out",
              made.run.numerics->data);
  }
  const std::size_t workers = made.options.workers.size() + made.options.spare_workers.size();
  if (made.options.embeddings.cache_rows > 0 && made.options.asynchronous && workers > 1) {
    bad_input("unsupported",
              "real numbers of asynchronous workers with caches: in each step they would wait for each other's rows; "
              "leave out --vocab-cache-size or --ps-async");
  }
}

PsTraining::PsTraining(const PsExperiment& made, std::uint32_t checkpoint_every)
    : graph_(computed_graph(made)),
      numerics_(*made.run.numerics),
      how_(replay_options(made, graph_, checkpoint_every)),
      replay_(graph_, production_order(*made.experiment.program), made.options.parameters, made.experiment.npus, how_) {
}

std::vector<double> PsTraining::losses_of_data_parallelism(Experiment& experiment, std::uint32_t steps) const {
  hccl::TrainerOptions options;
  options.workers = numerics_.workers;
  options.optimizer = how_.optimizer;
  options.learning_rate = how_.learning_rate;
  options.computation = how_.computation;
  options.data = how_.data;
  options.dataset = how_.dataset;
  options.shuffle = how_.shuffle;
  options.seed = how_.seed;
  hccl::Trainer trainer(graph_, {}, experiment.plan(), options);
  std::vector<double> losses;
  while (losses.size() < steps) losses.push_back(trainer.step(false).loss);
  return losses;
}

PsNumerics PsTraining::description() const {
  return {.computed_shape = shape_text(graph_), .data = replay_.data().describe()};
}

std::optional<Divergence> PsTraining::divergence(std::span<const WorkersStep> steps, std::uint64_t first) const {
  std::vector<double> losses(steps.size());
  std::ranges::transform(steps, losses.begin(), &WorkersStep::loss);
  return divergence_of(losses, first,
                       [&] { return all_finite(replay_.server_weights()) && all_finite(replay_.weights_of(0)); });
}

PsNumerics replay_numbers(PsExperiment& made, const hccl::PsOutcome& outcome) {
  PsTraining training(made, made.options.recovery.checkpoint_every);
  for (const hccl::PsLogEntry& entry : outcome.log) training.replay().take(entry);
  PsNumerics result = training.description();
  result.steps = training.replay().steps();
  result.diverged = training.divergence(steps_of_workers(result.steps), 1);
  if (made.options.spare_workers.empty()) {
    result.allreduce_losses = training.losses_of_data_parallelism(made.experiment, made.options.steps);
  }
  return result;
}

}  // namespace hcclsim::study
