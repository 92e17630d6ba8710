#include "study/run/step_range.hpp"

#include <map>
#include <memory>
#include <utility>

#include "hccl/comm/communicator.hpp"

namespace hcclsim::study {
namespace {

ChildOf<Seconds> step_at(Experiment& experiment, std::vector<Assumption> assumptions, RangeEnd end) {
  return ChildOf<Seconds>([&experiment, assumptions = std::move(assumptions), end] {
    assume(experiment.cluster, assumptions, end);
    experiment.costs = assumed(experiment.costs, assumptions, end);
    hccl::TrainingStep& training = experiment.training;
    training.step.host_launch = assumed_launch(training.step.host_launch, assumptions, end);
    std::map<const models::Program*, std::shared_ptr<const models::Program>> known;  // devices may share one
    const auto assume_of = [&](std::shared_ptr<const models::Program>& program) {
      auto& found = known[program.get()];
      if (found == nullptr) found = std::make_shared<models::Program>(assumed(*program, assumptions, end));
      program = found;
    };
    for (hccl::StageProgram& stage : training.stages) {
      assume_of(stage.program);
      for (std::shared_ptr<const models::Program>& of_device : stage.of_devices) assume_of(of_device);
    }
    return experiment.simulate(training).step_times[training.simulation.rank];
  });
}

}  // namespace

StepRange::Ends StepRange::ends_of(Experiment& experiment, std::string text,
                                   const std::vector<Assumption>& assumptions) {
  return {std::move(text), step_at(experiment, assumptions, RangeEnd::fast),
          step_at(experiment, assumptions, RangeEnd::slow)};
}

StepRange::StepRange(Experiment& experiment, bool each) {
  AssumedSubjects subjects{.host = experiment.training.step.launch == hccl::LaunchMode::op && experiment.npus > 1};
  subjects.launches = experiment.spec.host.launch_is_assumed;
  if (!experiment.measured_kernels()) subjects.slower_kernels = experiment.soc.slower_kernels;
  const std::vector<Assumption> assumptions =
      assumptions_of(experiment.cluster, hccl::world_communicator(experiment.npus).ranks, subjects);
  ends_.push_back(ends_of(experiment, "", assumptions));
  for (std::size_t i = 0; each && i < assumptions.size(); ++i) {
    ends_.push_back(ends_of(experiment, assumptions[i].text, {assumptions[i]}));
  }
}

Uncertainty StepRange::finish(Seconds used) {
  Uncertainty uncertainty;
  for (Ends& ends : ends_) {
    AssumptionEffect effect{ends.text, ends.fast.result(), ends.slow.result()};
    if (ends.text.empty()) {
      uncertainty = range_between(effect.fast, effect.slow);
      uncertainty.include(used);
    } else {
      uncertainty.effects.push_back(std::move(effect));
    }
  }
  sort_effects(uncertainty);
  return uncertainty;
}

}  // namespace hcclsim::study
