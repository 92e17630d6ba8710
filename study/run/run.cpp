#include "study/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "base/text.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/training/message_starts.hpp"
#include "study/platform/fault_notes.hpp"
#include "study/platform/link_report.hpp"
#include "study/platform/routing_spread.hpp"
#include "study/platform/shipped_platforms.hpp"
#include "study/run/side_simulations.hpp"

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

/// The wishes that go with the run; notes say what is left out.
RunWishes settled(Experiment& experiment, RunWishes wishes) {
  std::vector<std::string>& notes = experiment.notes;
  if (wishes.seeds_are_given) note_seeds(experiment.cluster, notes);
  if (wishes.links.most > 0 && experiment.cluster.splits_transfers()) {
    wishes.links.most = 0;
    notes.emplace_back(
        "the load of links over time is left out: it is not known of the queue pairs of a transfer one by one");
  }
  if (experiment.training.simulation.faults == nullptr) return wishes;
  // Faults have dates. What takes longer or less has others of its own, or never comes to them.
  wishes.without_faults = wishes.compared;
  if (wishes.compared || wishes.uncertainty) {
    notes.emplace_back(
        "with faults, a step is compared with one without them: neither other splits nor the range over what is "
        "assumed are simulated");
  }
  wishes.compared = wishes.uncertainty = false;
  if (wishes.explained) {
    notes.emplace_back("with faults, the algorithms that --explain compares are timed without them");
  }
  if (experiment.cluster.routing().kind == sim::RoutingKind::ecmp && wishes.routing_seeds > 0) {
    notes.emplace_back("with faults, ways that other seeds of the hash choose are not simulated");
  }
  wishes.routing_seeds = 0;
  return wishes;
}

bool wants_phases(const Experiment& experiment, const RunWishes& wishes) {
  return wishes.by_rank && experiment.npus <= most_ranks_by_phase && !has_many_kernels(experiment);
}

/// The step with the ranks that are to be traced.
hccl::TrainingStep traced_step(const Experiment& experiment, const RunWishes& wishes) {
  hccl::TrainingStep training = experiment.training;
  hccl::SimulationOptions& options = training.simulation;
  options.trace_tasks = wishes.tasks && !wishes.traced.empty();
  options.stream = wishes.stream;
  options.traced = wishes.traced;
  options.merges_kernels = wishes.traced.empty() && wishes.stream == nullptr && wishes.trace_points.found_by_itself();
  options.record_flows = wishes.links.most > 0;
  for (Rank rank = 0; wants_phases(experiment, wishes) && rank < experiment.npus; ++rank) {
    options.traced.push_back(rank);
  }
  for (std::uint32_t stage = 0; stage < training.step.shape.stages; ++stage) {
    options.traced.push_back(printed_rank(training, stage));
  }
  return training;
}

std::vector<GradientDates> gradient_dates(const hccl::TrainingStep& training, const RunResult& result,
                                          const hccl::MessageStarts& messages) {
  std::vector<GradientDates> dates;
  for (std::uint32_t stage = 0; stage < training.step.shape.stages; ++stage) {
    const Rank rank = printed_rank(training, stage);
    const auto view = hccl::StepView::of(result.step.plan, result.step.trace, rank, messages);
    GradientDates& of_stage =
        dates.emplace_back(GradientDates{result.step.plan.role(rank).program, view.gradient_ready});
    for (Seconds& ready : of_stage.ready) ready += view.fp_start - result.view.fp_start;
  }
  return dates;
}

/// What the step itself shows.
RunResult figures_of(Experiment& experiment, const hccl::TrainingStep& training, const RunWishes& wishes) {
  RunResult result;
  result.step = experiment.simulate(training);
  result.rank = training.simulation.rank;
  note_unfolded(training, result.step, experiment.notes);
  const hccl::MessageStarts messages(result.step.plan, result.step.trace);
  for (Rank rank = 0; wants_phases(experiment, wishes) && rank < experiment.npus; ++rank) {
    result.phases.push_back(rank_phases(hccl::StepView::of(result.step.plan, result.step.trace, rank, messages)));
  }
  result.view = hccl::StepView::of(result.step.plan, result.step.trace, result.rank, messages);
  if (wishes.gradient_dates) result.gradient_dates = gradient_dates(training, result, messages);
  hccl::choose_trace_points(result.view.iterations, result.step.plan, result.step.trace, result.rank,
                            wishes.trace_points);
  if (const sim::FaultPlan* const faults = training.simulation.faults.get(); faults != nullptr) {
    result.faults = fault_result(training, result.step);
    note_idle_faults({&result.step.idle_faults, 1}, experiment.notes);
    note_faults_to_come(faults->faults(), result.step.pipeline_ends.back(), experiment.notes);
  }
  result.parallel = parallel_result(experiment, result.step);
  result.host = host_figures(training, experiment.spec.host.images_per_second.value_or(0), result.step, result.view);
  result.throughput = throughput(experiment, result.step_time());
  if (experiment.profile.has_value()) {
    result.profile.emplace(*experiment.profile, simulated_phases(result.view, result.step_time()));
  }
  return result;
}

void add_facts(Experiment& experiment, const hccl::TrainingStep& training, RunResult& result) {
  std::vector<std::string> notes = std::move(result.notes);
  for (std::string& note : experiment.notes) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
  }
  static_cast<RunFacts&>(result) = static_cast<const RunFacts&>(experiment);
  static_cast<PlatformFacts&>(result) = experiment.facts();
  result.notes = std::move(notes);
  result.replicas = replicas_of(experiment);
  result.network = name_of(training.simulation.network);
  result.hbm = experiment.hbm();
  result.hbm_capacity = experiment.soc.hbm_bytes;
  if (training.simulation.hbm_contention) result.shared_hbm = experiment.soc.hbm_bandwidth;
  result.link_sources = link_sources(experiment.cluster, hccl::world_communicator(experiment.npus).ranks);
}

}  // namespace

bool has_many_kernels(const Experiment& experiment) {
  constexpr std::size_t many = 200'000;
  return experiment.program->kernels.size() > many;
}

RunResult simulate_run(Experiment& experiment, RunWishes wished) {
  experiment.training.simulation.work = std::move(wished.work);
  const RunWishes wishes = settled(experiment, std::move(wished));
  const std::vector<FinishSideSimulation> besides = start_side_simulations(experiment, wishes);
  const hccl::TrainingStep training = traced_step(experiment, wishes);
  RunResult result = figures_of(experiment, training, wishes);
  for (const FinishSideSimulation& finish : besides) finish(result);
  if (wishes.links.most > 0) {
    result.links =
        links_of(experiment.cluster, result.step, result.view, wishes.links, training.simulation.faults.get());
    result.step.flows = {};
  }
  add_facts(experiment, training, result);
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
