#include "study/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/training/message_starts.hpp"
#include "study/fabric/routing_spread.hpp"
#include "study/fault_notes.hpp"
#include "study/platform/link_report.hpp"
#include "study/platform/shipped_platforms.hpp"
#include "study/run/comparisons.hpp"
#include "study/run/compression.hpp"
#include "study/run/explanation.hpp"
#include "study/uncertainty/step_range.hpp"

namespace hcclsim::study {
namespace {

/// Of the last iteration on the printed rank.
LinkReport links_of(sim::Cluster& cluster, const hccl::TimedStep& step, const hccl::StepView& view,
                    const LinkWishes& wishes, const sim::FaultPlan* faults) {
  LinkQuestion question{.intervals = {view.fp_start, view.fp_start + view.iteration_end, wishes.intervals},
                        .most_links = wishes.most,
                        .owner_of = {},
                        .share_of = {},
                        .faults = faults};
  ask_for_shares(question, step.plan);
  LinkReport report = link_report(cluster, step.flows, step.orbits, question);
  report.host_copies_left_out = std::ranges::any_of(step.plan.roles, [](const hccl::Role& role) {
    return std::ranges::any_of(role.tasks,
                               [](const auto& task) { return std::holds_alternative<hccl::HostCopy>(task.work); });
  });
  return report;
}

/// Says where many ranks are simulated one by one, which takes its time, and padding may let them fold.
void note_unfolded(const hccl::TrainingStep& training, const hccl::TimedStep& step, std::vector<std::string>& notes) {
  constexpr Rank many = 512;
  const bool may_fold = training.simulation.fold == hccl::Fold::automatic &&
                        training.simulation.network == sim::NetworkKind::fluid && !training.simulation.skew.jitters() &&
                        !training.step.compression.has_value() && !training.simulation.trace_tasks &&
                        training.simulation.stream == nullptr;
  if (training.step.npus < many || !may_fold || training.step.pad_segments || !step.folded.empty()) return;
  notes.push_back(fmt::format(
      "all {} ranks were simulated: none were found that do the same; with --pad-segments on, which makes slices of "
      "allreduces equal, one may stand for many",
      with_thousands(training.step.npus)));
}

/// A step of so many kernels takes seconds, and memory for each of them.
bool has_many_kernels(const Experiment& experiment) {
  constexpr std::size_t many = 200'000;
  return experiment.program->kernels.size() > many;
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

RankPhases rank_phases(const hccl::StepView& view) {
  RankPhases phases{.bp_end = view.bp_end, .exposed = view.exposed};
  if (view.segments.empty()) return phases;
  phases.communication_start = view.segments.front().start;
  phases.communication_end = view.segments.back().end;
  return phases;
}

std::vector<RunResult::Replicas> replicas_of(const Experiment& experiment) {
  const hccl::TrainingStep& training = experiment.training;
  if (!experiment.data_parallel) return {{experiment.replicas, training.simulation.rank}};
  if (training.step.groups.empty()) return {{training.step.npus, training.simulation.rank}};
  std::vector<RunResult::Replicas> replicas;
  for (const hccl::Communicator& group : training.step.groups) {
    const std::vector<Rank>& ranks = group.ranks;
    const bool has_printed = std::find(ranks.begin(), ranks.end(), training.simulation.rank) != ranks.end();
    replicas.push_back({static_cast<Rank>(ranks.size()), has_printed ? training.simulation.rank : ranks.front()});
  }
  return replicas;
}

/// Weights and optimizer state that a rank keeps, on the stage where they are most.
Bytes checkpoint_bytes(const Experiment& experiment) {
  const auto kept = hccl::CheckpointWrites::bytes_of;
  Bytes most = kept(*experiment.program);
  for (const hccl::StageProgram& stage : experiment.training.stages) most = std::max(most, kept(*stage.program));
  return most;
}

/// What a step takes without faults; in a child.
ChildOf<Seconds> step_without_faults(Experiment& experiment) {
  hccl::TrainingStep training = experiment.training;
  training.simulation.faults.reset();
  return ChildOf<Seconds>([&experiment, training = std::move(training)] {
    return experiment.simulate(training).step_times[training.simulation.rank];
  });
}

FaultResult fault_result(const hccl::TrainingStep& training, const hccl::TimedStep& step) {
  FaultResult result;
  for (const sim::Fault& fault : training.simulation.faults->faults()) result.texts.push_back(fault.text);
  Seconds before = pipeline_start(training, training.simulation.rank);
  for (const std::vector<Seconds>& ends : step.pipeline_ends) {
    result.steps.push_back(ends[training.simulation.rank] - before);
    before = ends[training.simulation.rank];
  }
  return result;
}

/// What is sent once before the first step, if anything is, with its time still to come from a child.
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

/// Starts the steps with other seeds of the hash, where there is one.
std::optional<RoutingTimes> routing_times(Experiment& experiment, std::uint32_t seeds) {
  if (experiment.cluster.routing().kind != sim::RoutingKind::ecmp || seeds == 0) return std::nullopt;
  hccl::TrainingStep training = experiment.training;
  hccl::Fold& fold = training.simulation.fold;
  if (fold == hccl::Fold::require) fold = hccl::Fold::automatic;  // other routes may not fold
  return std::optional<RoutingTimes>(std::in_place, experiment.cluster, seeds, [&experiment, training] {
    return std::vector<Seconds>{experiment.simulate(training).step_times[training.simulation.rank]};
  });
}

void start_comparisons(Experiment& experiment, bool at_any_size, std::optional<Comparisons>& comparisons) {
  const std::string kernels = with_thousands(experiment.program->kernels.size());
  if (at_any_size || !is_slow_to_compare(experiment)) {
    comparisons.emplace(experiment, true);
  } else if (has_many_kernels(experiment)) {
    experiment.notes.push_back(fmt::format(
        "one NPU, hcom_parallel turned and other splits are not simulated beside a step of {} kernels, as that would "
        "take minutes; --advice asks for them",
        kernels));
  } else {
    comparisons.emplace(experiment, false);
    experiment.notes.push_back(fmt::format(
        "hcom_parallel turned and other splits are not simulated beside a step of {} ranks and {} kernels, as that may "
        "take minutes; --advice asks for them, and with --pad-segments on one rank may stand for many",
        with_thousands(experiment.npus), kernels));
  }
}

/// Of many NPUs the range alone, of steps in parts not even that.
void start_range(Experiment& experiment, bool parallel, bool explained, std::optional<StepRange>& range) {
  constexpr Rank most_npus = 64;
  if (!explained && has_many_kernels(experiment)) {
    experiment.notes.push_back(
        fmt::format("the range over what is assumed is not simulated of a step of {} kernels; --explain-uncertainty "
                    "asks for it",
                    with_thousands(experiment.program->kernels.size())));
  } else if (!parallel || experiment.npus <= most_npus) {
    range.emplace(experiment, explained || experiment.npus <= most_npus);
  }
}

}  // namespace

RunResult simulate_run(Experiment& experiment, RunWishes wishes) {
  experiment.training.simulation.work = std::move(wishes.work);
  hccl::TrainingStep training = experiment.training;
  training.simulation.trace_tasks = wishes.tasks && !wishes.traced.empty();
  training.simulation.stream = std::move(wishes.stream);
  if (wishes.seeds_are_given) note_seeds(experiment.cluster, experiment.notes);
  training.simulation.traced = std::move(wishes.traced);
  training.simulation.merges_kernels = training.simulation.traced.empty() && training.simulation.stream == nullptr &&
                                       wishes.trace_points.found_by_itself();
  if (wishes.links.most > 0 && experiment.cluster.splits_transfers()) {
    wishes.links.most = 0;
    experiment.notes.emplace_back(
        "the load of links over time is left out: it is not known of the queue pairs of a transfer one by one");
  }
  training.simulation.record_flows = wishes.links.most > 0;
  std::optional<ChildOf<Seconds>> without_faults;
  if (training.simulation.faults != nullptr) {
    // Faults have dates. What takes longer or less has others of its own, or never comes to them.
    if (wishes.compared) without_faults.emplace(step_without_faults(experiment));
    if (wishes.compared || wishes.uncertainty) {
      experiment.notes.emplace_back(
          "with faults, a step is compared with one without them: neither other splits nor the range over what is "
          "assumed are simulated");
    }
    wishes.compared = wishes.uncertainty = false;
    if (wishes.explained) {
      experiment.notes.emplace_back("with faults, the algorithms that --explain compares are timed without them");
    }
    if (experiment.cluster.routing().kind == sim::RoutingKind::ecmp && wishes.routing_seeds > 0) {
      experiment.notes.emplace_back("with faults, ways that other seeds of the hash choose are not simulated");
    }
    wishes.routing_seeds = 0;
  }
  const bool parallel = !experiment.data_parallel || experiment.batch.micro_batches > 1;
  std::optional<Comparisons> comparisons;
  if (wishes.compared && !parallel && experiment.runs_of_parameters) {
    start_comparisons(experiment, wishes.compared_at_any_size, comparisons);
  }
  std::optional<CompressionComparison> compression;
  if (training.step.compression.has_value()) {
    if (wishes.explained) {
      bad_input("unsupported", "--explain does not know the collectives of --compress yet; leave out one of them");
    }
    if (wishes.hook_compared) compression.emplace(experiment);
  }
  std::optional<StepRange> range;
  if (wishes.uncertainty) start_range(experiment, parallel, wishes.explained_uncertainty, range);
  std::optional<RoutingTimes> routing = routing_times(experiment, wishes.routing_seeds);
  std::optional<StartUpResult> start_up = start_up_of(experiment);
  std::optional<ChildOf<Seconds>> start_up_time;
  if (start_up.has_value()) {
    start_up->plan = plan_start_up(experiment.cluster, experiment.soc, experiment.training.step, experiment.start_up);
    start_up_time.emplace([&experiment, &plan = start_up->plan] {
      return simulate_start_up(experiment.cluster, experiment.soc, experiment.costs, experiment.training, plan);
    });
  }
  // A job of days adds checkpoints to steps without them.
  std::optional<ChildOf<Seconds>> plain_step;
  if (experiment.failures.has_value() && training.step.checkpoints.has_value()) {
    hccl::TrainingStep plain = experiment.training;
    plain.step.checkpoints.reset();
    plain_step.emplace([&experiment, plain = std::move(plain)] {
      return experiment.simulate(plain).step_times[plain.simulation.rank];
    });
  }
  std::optional<RunExplanation> explanation;
  if (wishes.explained && experiment.data_parallel) explanation.emplace(experiment);

  const bool by_rank = wishes.by_rank && training.step.npus <= most_ranks_by_phase && !has_many_kernels(experiment);
  for (Rank rank = 0; by_rank && rank < training.step.npus; ++rank) training.simulation.traced.push_back(rank);
  for (std::uint32_t stage = 0; stage < training.step.shape.stages; ++stage) {
    training.simulation.traced.push_back(printed_rank(training, stage));
  }
  RunResult result;
  result.step = experiment.simulate(training);
  note_unfolded(training, result.step, experiment.notes);
  const hccl::MessageStarts messages(result.step.plan, result.step.trace);
  for (Rank rank = 0; by_rank && rank < training.step.npus; ++rank) {
    result.phases.push_back(rank_phases(hccl::StepView::of(result.step.plan, result.step.trace, rank, messages)));
  }
  result.view = hccl::StepView::of(result.step.plan, result.step.trace, training.simulation.rank, messages);
  hccl::choose_trace_points(result.view.iterations, result.step.plan, result.step.trace, training.simulation.rank,
                            wishes.trace_points);
  if (training.simulation.faults != nullptr) {
    result.faults = fault_result(training, result.step);
    note_idle_faults({&result.step.idle_faults, 1}, experiment.notes);
    note_faults_to_come(training.simulation.faults->faults(), result.step.pipeline_ends.back(), experiment.notes);
    if (without_faults.has_value()) result.faults->without = without_faults->result();
  }
  result.parallel = parallel_result(experiment, result.step);
  result.comm_reuse = experiment.comm_reuse;
  result.input = experiment.input;
  result.host = host_figures(training, experiment.images_per_second, result.step, result.view);
  result.rank = training.simulation.rank;
  result.throughput = throughput(experiment, result.step_time());
  if (experiment.failures.has_value()) {
    const Seconds step_time = plain_step.has_value() ? plain_step->result() : result.step_time();
    result.goodput = goodput_of(*experiment.failures, step_time, checkpoint_bytes(experiment), experiment.npus);
  }
  if (comparisons.has_value()) static_cast<Comparison&>(result) = comparisons->finish();
  if (training.step.compression.has_value()) {
    result.compression = compression.has_value() ? compression->finish() : compression_result(experiment);
  }
  if (range.has_value()) result.uncertainty = range->finish(result.step_time());
  if (routing.has_value()) result.routing = routing->finish().front();
  if (explanation.has_value()) result.explanation = explanation->finish();
  if (start_up.has_value()) start_up->time = start_up_time->result();
  result.start_up = start_up;
  if (experiment.profile.has_value()) {
    result.profile.emplace(*experiment.profile, simulated_phases(result.view, result.step_time()));
  }
  result.model = experiment.model;
  result.gradient_rule = experiment.gradient_rule;
  result.platform = platform_name(experiment.cluster.path());
  result.rank_table = experiment.rank_table;
  result.npu = experiment.soc.name;
  result.npus = experiment.npus;
  result.replicas = replicas_of(experiment);
  result.network = name_of(training.simulation.network);
  result.program = experiment.program;
  result.micro_batches = experiment.batch.micro_batches;
  result.hbm = experiment.hbm();
  result.hbm_capacity = experiment.soc.hbm_bytes;
  if (wishes.links.most > 0) {
    result.links =
        links_of(experiment.cluster, result.step, result.view, wishes.links, training.simulation.faults.get());
    result.step.flows = {};
  }
  if (training.simulation.hbm_contention) result.shared_hbm = experiment.soc.hbm_bandwidth;
  result.link_sources = link_sources(experiment.cluster, hccl::world_communicator(experiment.npus).ranks);
  result.unmodelled = experiment.unmodelled;
  for (std::string& note : experiment.notes) {
    if (std::ranges::find(result.notes, note) == result.notes.end()) result.notes.push_back(std::move(note));
  }
  if (wishes.links.most > 0 && training.step.input.has_value() && !experiment.cluster.cpus().empty()) {
    result.notes.emplace_back("busiest links: copies of batches from the host are not counted");
  }
  return result;
}

RunFigures simulate(const RunSpec& spec) {
  return on_experiment(spec, [](Experiment& experiment) -> RunFigures {
    RunResult result = simulate_run(experiment);
    return {result.step_time(), result.images_per_second(), result.fullest().hbm, std::move(result.view),
            std::move(result.notes)};
  });
}

}  // namespace hcclsim::study
