#include "study/run/comparisons.hpp"

#include <memory>
#include <utility>

namespace hcclsim::study {
namespace {

/// Simulates with these options in a child that returns the step time.
ChildOf<Seconds> step_in_child(Experiment& experiment, hccl::TrainingStep training) {
  return ChildOf<Seconds>([&experiment, training = std::move(training)] {
    return experiment.simulate(training).step_times[training.simulation.rank];
  });
}

/// The program of a replica that has none beside it: sums of all replicas are its own, and where mirrors divide by
/// their number (R1.16 of MindSpore's semi_auto_parallel), it has no mirrors.
std::shared_ptr<const models::Program> program_alone(const Experiment& experiment) {
  auto alone = std::make_shared<models::Program>(*experiment.program);
  for (models::Kernel& kernel : alone->kernels) {
    if (kernel.communication == nullptr) continue;
    auto work = std::make_shared<models::CommunicationWork>(*kernel.communication);
    work->group.ranks = 1;
    kernel.communication = std::move(work);
  }
  if (!experiment.mirrors_divide()) return alone;
  std::erase_if(alone->kernels, [](const models::Kernel& kernel) {
    return kernel.phase == models::Phase::update &&
           (kernel.name.ends_with(":mean") || kernel.name.ends_with(":mean_again"));
  });
  return alone;
}

/// The step of an NPU as it should be, without others.
hccl::TrainingStep step_alone(const Experiment& experiment) {
  hccl::TrainingStep alone = experiment.training;
  hccl::StageProgram& stage = alone.stages.front();
  stage.program = program_alone(experiment);
  stage.reductions = hccl::reductions_of(experiment.training.segments());
  if (!stage.families.empty()) stage.families = {{{0}}};
  alone.step.npus = 1;
  alone.step.groups.clear();
  alone.step.allreduce = hccl::Algorithm::automatic;  // one NPU has nothing to reduce
  alone.step.levels.clear();
  alone.step.compression.reset();
  // The NPUs that take part share a server's data workers: one has all of them, as it has the links to the CPU.
  if (alone.step.input.has_value())
    alone.step.input->samples_per_second = {experiment.spec.host.images_per_second.value_or(0)};
  alone.simulation.rank = 0;
  alone.simulation.skew = {};
  alone.simulation.faults.reset();
  return alone;
}

}  // namespace

Comparisons::Comparisons(Experiment& experiment, bool splits) {
  const hccl::TrainingStep& training = experiment.training;
  if (training.step.npus == 1) return;
  one_npu_.emplace([&experiment, alone = step_alone(experiment)] {
    return simulate_training(experiment.cluster, experiment.soc, experiment.costs, alone).step_times.front();
  });
  if (!splits) return;
  // Splits are searched for all ranks together and all gradients, so none is where groups reduce by themselves, of
  // gradients of several types, or where hooks compress them.
  const bool searched = training.step.groups.empty() && !training.step.compression.has_value() &&
                        !experiment.program->has_several_gradient_types();
  if (training.step.hcom_parallel || !searched) {
    hccl::TrainingStep turned = training;
    turned.step.hcom_parallel = !training.step.hcom_parallel;
    turned_.emplace(step_in_child(experiment, turned));
  }
  if (searched) search_.emplace(experiment);
}

Comparison Comparisons::finish() {
  Comparison comparison;
  if (!one_npu_.has_value()) return comparison;
  comparison.one_npu_step = one_npu_->result();
  if (turned_.has_value()) comparison.other_hcom_parallel_step = turned_->result();
  if (!search_.has_value()) return comparison;
  if (!turned_.has_value()) comparison.other_hcom_parallel_step = search_->own_step();
  comparison.trials = search_->trials();
  comparison.advice = search_->advice(comparison.trials);
  return comparison;
}

}  // namespace hcclsim::study
