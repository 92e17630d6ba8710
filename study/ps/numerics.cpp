#include "study/ps/numerics.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "hccl/training/numerics/trainer.hpp"
#include "study/run/numeric_shape.hpp"

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

/// The same training without servers: the mean loss of all workers, step by step.
std::vector<double> losses_of_data_parallelism(const models::Graph& graph, Experiment& experiment,
                                               const hccl::ReplayOptions& how, const NumericsSpec& numerics,
                                               std::uint32_t steps) {
  hccl::TrainerOptions options;
  options.workers = numerics.workers;
  options.optimizer = how.optimizer;
  options.learning_rate = how.learning_rate;
  options.computation = how.computation;
  options.data = how.data;
  options.shuffle = how.shuffle;
  options.seed = how.seed;
  hccl::Trainer trainer(graph, {}, experiment.plan(), options);
  std::vector<double> losses;
  while (losses.size() < steps) losses.push_back(trainer.step(false).loss);
  return losses;
}

}  // namespace

PsNumerics replay_numbers(PsExperiment& made, const hccl::PsOutcome& outcome) {
  const NumericsSpec& numerics = *made.run.numerics;
  const Rank workers = made.experiment.npus;
  const models::Graph graph = numeric_graph(made.run, made.experiment.batch, workers);
  std::vector<std::uint32_t> order;
  for (const models::Gradient& gradient : made.experiment.program->gradients) {
    order.push_back(gradient.parameter);
    const models::Parameter& parameter = graph.parameters.at(gradient.parameter);
    if (parameter.elements == gradient.elements) continue;
    bad_input("option",
              "{} has {} elements in the shape that is computed, but {} in the timed one; give --numeric-input",
              parameter.name, parameter.elements, gradient.elements);
  }
  // Workers that are added take their samples from the same data.
  const std::uint64_t most_workers = workers + made.options.spare_workers.size();
  hccl::ReplayOptions how{
      .optimizer = numerics.optimizer,
      .learning_rate = numerics.learning_rate,
      .computation = computation_of(numerics, made.experiment.soc),
      .data = numerics.data.empty() ? fmt::format("synthetic:{}", most_workers * graph.batch()) : numerics.data,
      .shuffle = numerics.shuffle,
      .seed = numerics.seed,
      .checkpoint_every = made.options.recovery.checkpoint_every};
  how.optimizer.rule = made.run.optimizer;
  hccl::Replay replay(graph, order, made.options.parameters, workers, how);
  for (const hccl::PsLogEntry& entry : outcome.log) replay.take(entry);
  PsNumerics result{.computed_shape = shape_text(graph), .data = replay.data().describe(), .steps = replay.steps()};
  if (made.options.spare_workers.empty()) {
    result.allreduce_losses = losses_of_data_parallelism(graph, made.experiment, how, numerics, made.options.steps);
  }
  return result;
}

}  // namespace hcclsim::study
