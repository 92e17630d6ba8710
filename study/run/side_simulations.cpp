#include "study/run/side_simulations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "study/platform/routing_spread.hpp"
#include "study/run/comparisons.hpp"
#include "study/run/compression.hpp"
#include "study/run/explanation.hpp"
#include "study/run/step_range.hpp"

namespace hcclsim::study {
namespace {

using Finish = FinishSideSimulation;

/// Keeps what works until it is finished: `take` puts it into the result.
template <typename Working, typename Take>
Finish finish_of(std::shared_ptr<Working> working, Take take) {
  return [working = std::move(working), take = std::move(take)](RunResult& result) { take(*working, result); };
}

std::shared_ptr<ChildOf<Seconds>> step_time_of(Experiment& experiment, hccl::TrainingStep training) {
  return std::make_shared<ChildOf<Seconds>>([&experiment, training = std::move(training)] {
    return experiment.simulate(training).step_times[training.simulation.rank];
  });
}

bool differs_by_rank_or_batch(const Experiment& experiment) {
  return !experiment.data_parallel || experiment.batch.micro_batches > 1;
}

Finish start_without_faults(Experiment& experiment, const RunWishes& wishes) {
  if (!wishes.without_faults) return {};
  hccl::TrainingStep training = experiment.training;
  training.simulation.faults.reset();
  return finish_of(step_time_of(experiment, std::move(training)),
                   [](ChildOf<Seconds>& step, RunResult& result) { result.faults->without = step.result(); });
}

/// Whether what a step is compared with, dozens of simulations, takes minutes: where kernels are many, or ranks of
/// which none stands for others. Other splits have slices of other sizes, which padding alone makes alike.
bool is_slow_to_compare(Experiment& experiment) {
  constexpr Rank many = 2048;
  if (experiment.npus <= many || has_many_kernels(experiment)) return has_many_kernels(experiment);
  hccl::TrainingStep training = experiment.training;
  if (training.simulation.fold == hccl::Fold::off || !training.step.pad_segments) return true;
  training.simulation.fold = hccl::Fold::require;
  return ChildOf<bool>([&experiment, training = std::move(training)] {
           try {
             static_cast<void>(experiment.simulate(training));
             return false;
           } catch (const Error& error) {
             return error.kind() == "fold";
           }
         })
      .result();
}

/// With one NPU, hcom_parallel turned and other splits.
Finish start_comparisons(Experiment& experiment, const RunWishes& wishes) {
  if (!wishes.compared || differs_by_rank_or_batch(experiment) || !experiment.runs_of_parameters) return {};
  const std::string kernels = with_thousands(experiment.program->kernels.size());
  const bool at_once = wishes.compared_at_any_size || !is_slow_to_compare(experiment);
  if (!at_once && has_many_kernels(experiment)) {
    experiment.notes.push_back(fmt::format(
        "one NPU, hcom_parallel turned and other splits are not simulated beside a step of {} kernels, as that would "
        "take minutes; --advice asks for them",
        kernels));
    return {};
  }
  auto comparisons = std::make_shared<Comparisons>(experiment, at_once);
  if (!at_once) {
    experiment.notes.push_back(fmt::format(
        "hcom_parallel turned and other splits are not simulated beside a step of {} ranks and {} kernels, as that may "
        "take minutes; --advice asks for them, and with --pad-segments on one rank may stand for many",
        with_thousands(experiment.npus), kernels));
  }
  return finish_of(std::move(comparisons), [](Comparisons& working, RunResult& result) {
    static_cast<Comparison&>(result) = working.finish();
  });
}

/// In stages or with shared parameters, where they are asked for: hcom_parallel turned and other rules of fusion.
Finish start_fusions(Experiment& experiment, const RunWishes& wishes) {
  const hccl::TrainingStep& training = experiment.training;
  if (!wishes.compared || !wishes.compared_at_any_size || experiment.data_parallel || training.step.shape.forward_only)
    return {};
  const bool reduces = std::ranges::any_of(training.stages, [](const hccl::StageProgram& stage) {
    return !stage.reductions.empty() || !stage.gathers.empty();
  });
  if (!reduces || training.replica_count() == 1 || training.step.compression.has_value()) return {};
  hccl::TrainingStep turned = training;
  turned.step.hcom_parallel = !training.step.hcom_parallel;
  const auto turned_step = step_time_of(experiment, std::move(turned));
  const auto search = [&experiment] {
    FusionSearch found =
        search_fusion(experiment.spec_on_placed(), experiment.cluster, [](const std::string& /*what*/) {});
    return Comparison::Fusions{std::move(found.trials), std::move(found.given)};
  };
  return finish_of(std::make_shared<ChildOf<Comparison::Fusions>>(search),
                   [turned_step](ChildOf<Comparison::Fusions>& working, RunResult& result) {
                     result.other_hcom_parallel_step = turned_step->result();
                     result.fusions = working.result();
                   });
}

/// Steps of which none, or each one, has the hook that compresses.
Finish start_hooks(Experiment& experiment, const RunWishes& wishes) {
  if (!experiment.training.step.compression.has_value()) return {};
  if (wishes.explained) {
    bad_input("unsupported", "--explain does not know the collectives of --compress yet; leave out one of them");
  }
  if (!wishes.hook_compared) {
    return [&experiment](RunResult& result) { result.compression = compression_result(experiment); };
  }
  return finish_of(std::make_shared<CompressionComparison>(experiment),
                   [](CompressionComparison& working, RunResult& result) { result.compression = working.finish(); });
}

/// Of many NPUs the range alone, of steps in parts not even that.
Finish start_range(Experiment& experiment, const RunWishes& wishes) {
  constexpr Rank most_npus = 64;
  if (!wishes.uncertainty) return {};
  const bool explained = wishes.explained_uncertainty;
  if (!explained && has_many_kernels(experiment)) {
    experiment.notes.push_back(
        fmt::format("the range over what is assumed is not simulated of a step of {} kernels; --explain-uncertainty "
                    "asks for it",
                    with_thousands(experiment.program->kernels.size())));
    return {};
  }
  if (differs_by_rank_or_batch(experiment) && experiment.npus > most_npus) return {};
  return finish_of(
      std::make_shared<StepRange>(experiment, explained || experiment.npus <= most_npus),
      [](StepRange& working, RunResult& result) { result.uncertainty = working.finish(result.step_time()); });
}

/// The step with other seeds of the hash, where there is one.
Finish start_routing(Experiment& experiment, const RunWishes& wishes) {
  if (experiment.cluster.routing().kind != sim::RoutingKind::ecmp || wishes.routing_seeds == 0) return {};
  hccl::TrainingStep training = experiment.training;
  hccl::Fold& fold = training.simulation.fold;
  if (fold == hccl::Fold::require) fold = hccl::Fold::automatic;  // other routes may not fold
  auto times = std::make_shared<RoutingTimes>(experiment.cluster, wishes.routing_seeds, [&experiment, training] {
    return std::vector<Seconds>{experiment.simulate(training).step_times[training.simulation.rank]};
  });
  return finish_of(std::move(times),
                   [](RoutingTimes& working, RunResult& result) { result.routing = working.finish().front(); });
}

/// What is sent once before the first step, without its time and Plan; none: nothing is.
std::optional<StartUpResult> start_up_of(const Experiment& experiment) {
  StartUpResult result;
  std::uint64_t weights = 0;
  std::uint64_t sent = 0;
  for (std::size_t stage = 0; stage < experiment.start_up.size(); ++stage) {
    const models::Program& program = *experiment.training.stages[stage].program;
    for (const models::ParameterShare& share : program.parameters) weights += share.elements;
    sent += experiment.start_up[stage].broadcast_elements;
  }
  result.all_weights = sent == weights;
  for (const hccl::StartUp& stage : experiment.start_up) {
    if (experiment.training.step.stage_ranks() > 1) result.broadcast += stage.broadcast_elements * sizeof(float);
    for (const models::Kernel& copy : stage.copies) {
      const models::CommunicationWork& work = *copy.communication;
      if (work.kind == models::OperatorKind::send) result.copied += work.elements * size_of(work.dtype);
    }
  }
  if (result.broadcast == 0 && result.copied == 0) return std::nullopt;
  return result;
}

Finish start_start_up(Experiment& experiment, const RunWishes& /*wishes*/) {
  struct Working {
    Working(Experiment& experiment, StartUpResult start_up)
        : result(std::move(start_up)), time([&experiment, &plan = result.plan] {
            return simulate_start_up(experiment.cluster, experiment.soc, experiment.costs, experiment.training, plan);
          }) {}
    StartUpResult result;
    ChildOf<Seconds> time;
  };
  std::optional<StartUpResult> start_up = start_up_of(experiment);
  if (!start_up.has_value()) return {};
  start_up->plan = plan_start_up(experiment.cluster, experiment.soc, experiment.training.step, experiment.start_up);
  return finish_of(std::make_shared<Working>(experiment, std::move(*start_up)),
                   [](Working& working, RunResult& result) {
                     working.result.time = working.time.result();
                     result.start_up = std::move(working.result);
                   });
}

/// Weights and optimizer state that a rank keeps, on the stage where they are most.
Bytes checkpoint_bytes(const Experiment& experiment) {
  const auto kept = hccl::CheckpointWrites::bytes_of;
  Bytes most = kept(*experiment.program);
  for (const hccl::StageProgram& stage : experiment.training.stages) most = std::max(most, kept(*stage.program));
  return most;
}

/// A job of days adds checkpoints to steps without them.
Finish start_goodput(Experiment& experiment, const RunWishes& /*wishes*/) {
  if (!experiment.spec.failures.has_value()) return {};
  const auto goodput = [&experiment](Seconds step) {
    return goodput_of(*experiment.spec.failures, step, checkpoint_bytes(experiment), experiment.npus);
  };
  if (!experiment.training.step.checkpoints.has_value()) {
    return [goodput](RunResult& result) { result.goodput = goodput(result.step_time()); };
  }
  hccl::TrainingStep plain = experiment.training;
  plain.step.checkpoints.reset();
  return finish_of(step_time_of(experiment, std::move(plain)),
                   [goodput](ChildOf<Seconds>& step, RunResult& result) { result.goodput = goodput(step.result()); });
}

/// Why each allreduce has its algorithm.
Finish start_explanation(Experiment& experiment, const RunWishes& wishes) {
  if (!wishes.explained) return {};
  return finish_of(std::make_shared<RunExplanation>(experiment),
                   [](RunExplanation& working, RunResult& result) { result.explanation = working.finish(); });
}

using Start = Finish (*)(Experiment&, const RunWishes&);
constexpr std::array<Start, 9> side_simulations{start_without_faults, start_comparisons, start_fusions,
                                                start_hooks,          start_range,       start_routing,
                                                start_start_up,       start_goodput,     start_explanation};

}  // namespace

std::vector<Finish> start_side_simulations(Experiment& experiment, const RunWishes& wishes) {
  std::vector<Finish> started;
  for (const Start start : side_simulations) {
    if (Finish finish = start(experiment, wishes)) started.push_back(std::move(finish));
  }
  return started;
}

}  // namespace hcclsim::study
