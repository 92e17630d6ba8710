#include "hccl/training/training.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/parallel/step_plan.hpp"
#include "hccl/runtime/runtime.hpp"
#include "hccl/training/executor.hpp"
#include "hccl/training/simulation.hpp"

namespace hcclsim::hccl {
namespace {

/// Schedules as the options and HCCL choose them; groups of one shape share them.
class ScheduleShop {
 public:
  ScheduleShop(sim::Cluster& cluster, const device::Soc& soc, const StepSpec& step)
      : cluster_(cluster), soc_(soc), step_(step) {}

  std::shared_ptr<const Schedule> make(const Communicator& group, const Operation& operation) {
    const Topology& shape = shape_of(group, operation);
    std::vector<Made>& alike = made_[operation.payload()];
    for (const Made& made : alike) {
      if (made.operation == operation && made.shape == shape) return made.schedule;
    }
    alike.push_back({shape, operation, make_collective(step_.request_of(operation), shape, soc_)});
    return alike.back().schedule;
  }

 private:
  const Topology& shape_of(const Communicator& group, const Operation& operation) {
    if (operation.collective == Collective::send_recv && operation.ranks == 2) return of_message_;
    const auto [shape, is_new] = shapes_.try_emplace(group.ranks);
    if (is_new) shape->second = topology_of(group, cluster_);
    return shape->second;
  }

  struct Made {
    Topology shape;
    Operation operation;
    std::shared_ptr<const Schedule> schedule;
  };
  sim::Cluster& cluster_;
  const device::Soc& soc_;
  const StepSpec& step_;
  Topology of_message_{.ranks = 2};
  std::map<std::vector<Rank>, Topology> shapes_;       // of groups, by their ranks
  std::unordered_map<Bytes, std::vector<Made>> made_;  // by payload
};

/// Whether a rank is in the group of a collective whose first rank is `first`.
bool together(const Plan& plan, std::uint32_t collective, Rank first, Rank rank) {
  const std::vector<Communicator>& groups = plan.families[plan.collectives[collective].family].groups;
  return std::any_of(groups.begin(), groups.end(), [&](const Communicator& group) {
    return group.ranks.front() == first && std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
  });
}

/// What took most of the time of each collective in its last iteration, for a rank that came to it at its own date.
std::vector<Bottleneck> bottlenecks_of(const Plan& plan, const Runtime& runtime, const sim::Trace& trace,
                                       const sim::Cluster& cluster, const SimulationOptions& options) {
  const auto collective_of = [&](Rank rank, const sim::TaskId& id) -> const std::uint32_t* {
    const auto last = static_cast<std::int32_t>(options.iterations) - 1;
    if (id.iteration != last || id.task >= plan.role(rank).tasks.size()) return nullptr;
    const auto* task = std::get_if<CollectiveTask>(&plan.role(rank).tasks[id.task].work);
    return task == nullptr ? nullptr : &task->collective;
  };
  std::vector<Seconds> arrivals(plan.collectives.size(), 0);
  for (const sim::Span& span : trace.spans()) {
    if (span.rank != options.rank || span.kind != sim::SpanKind::collective) continue;
    if (const auto* collective = collective_of(span.rank, span.id)) arrivals[*collective] = span.start;
  }
  std::vector<Bottleneck> bottlenecks(plan.collectives.size());
  for (const CollectiveStats& stats : runtime.collectives()) {
    const auto* collective = collective_of(stats.first_rank, stats.id);
    if (collective != nullptr && together(plan, *collective, stats.first_rank, options.rank)) {
      bottlenecks[*collective] = find_bottleneck(stats, cluster, arrivals[*collective]);
    }
  }
  return bottlenecks;
}

/// Of every rank: its own, or that of the last rank where stages keep each other's pace.
std::vector<Seconds> latest_of_pipelines(const std::vector<Seconds>& ends, const StepSpec& step) {
  if (step.shape.stages == 1) return ends;
  return std::vector<Seconds>(ends.size(), *std::ranges::max_element(ends));
}

/// Of a rank: mean distance of successive ends, without the first iteration if there are others: it starts from rest.
Seconds mean_step(const std::vector<std::vector<Seconds>>& ends, Rank rank, Seconds start) {
  const Seconds last = ends.back()[rank];
  if (ends.size() == 1) return last - start;
  return (last - ends.front()[rank]) / static_cast<double>(ends.size() - 1);
}

/// Of ranks that are traced and have another to stand for them: its spans, once more.
void add_spans_of_images(const RankOrbits& orbits, std::span<const Rank> traced, sim::Trace& trace) {
  std::map<Rank, std::vector<Rank>> images;
  for (const Rank rank : std::set<Rank>(traced.begin(), traced.end())) {
    if (!orbits.represents(rank)) images[orbits.representative(rank)].push_back(rank);
  }
  if (images.empty()) return;
  const std::size_t simulated = trace.spans().size();
  for (std::size_t i = 0; i < simulated; ++i) {
    sim::Span span = trace.spans()[i];
    const auto alike = images.find(span.rank);
    if (alike == images.end()) continue;
    for (const Rank rank : alike->second) {
      span.rank = rank;
      trace.add(span);
    }
  }
}

/// Of all ranks in the iterations that are asked for.
std::uint64_t transfers_of(const Runtime& runtime, const SimulationOptions& options) {
  std::uint64_t transfers = 0;
  for (const CollectiveStats& stats : runtime.collectives()) {
    if (stats.id.iteration < static_cast<std::int32_t>(options.iterations)) transfers += stats.transfers * stats.groups;
  }
  return transfers;
}

std::vector<Rank> traced_ranks(const SimulationOptions& options) {
  std::vector<Rank> traced = options.traced;
  traced.push_back(options.rank);
  return traced;
}

/// What there is of a step before it is simulated: when its last iteration has ended, add_figures() adds the rest.
TimedStep planned_step(sim::Cluster& cluster, const device::Soc& soc, const TrainingStep& training) {
  const SimulationOptions& options = training.simulation;
  TimedStep step;
  step.plan = plan_training(cluster, soc, training);
  step.trace.select(traced_ranks(options), cluster.size(), options.trace_tasks);
  if (options.merges_kernels) step.trace.merge_kernels_before(static_cast<std::int32_t>(options.iterations) - 1);
  return step;
}

void add_figures(TimedStep& step, const Runtime& runtime, const sim::Cluster& cluster, const TrainingStep& training) {
  step.trace.end_host_at(*std::ranges::max_element(step.iteration_ends.back()));
  step.transfers = transfers_of(runtime, training.simulation);
  for (const std::vector<Seconds>& ends : step.iteration_ends) {
    step.pipeline_ends.push_back(latest_of_pipelines(ends, training.step));
  }
  for (Rank rank = 0; rank < training.step.npus; ++rank) {
    step.step_times.push_back(mean_step(step.pipeline_ends, rank, pipeline_start(training, rank)));
  }
  step.bottlenecks = bottlenecks_of(step.plan, runtime, step.trace, cluster, training.simulation);
}

/// Ranks that others stand for, and faults over whose links nothing goes.
void add_folded_and_idle(TimedStep& step, const Simulation& simulation, const SimulationOptions& options,
                         std::size_t job) {
  if (options.faults != nullptr) step.idle_faults = simulation.links(job).idle(*options.faults);
  const RankOrbits* orbits = simulation.orbits(job);
  if (orbits == nullptr) return;
  step.folded = orbits->classes();
  add_spans_of_images(*orbits, traced_ranks(options), step.trace);
}

void check_training(const sim::Cluster& cluster, const TrainingStep& training) {
  const auto& [stages, step, options] = training;
  if (step.npus == 0 || step.npus > cluster.size()) {
    bad_input("option", "{} NPUs asked for, the platform has {}", step.npus, cluster.size());
  }
  if (options.rank >= step.npus) {
    bad_input("option", "rank {} does not take part; ranks are 0 to {}", options.rank, step.npus - 1);
  }
  for (const Rank rank : options.traced) {
    if (rank >= step.npus) {
      bad_input("option", "traced rank {} does not take part; ranks are 0 to {}", rank, step.npus - 1);
    }
  }
  if (options.iterations == 0) bad_input("option", "at least one iteration is needed");
  if (options.hbm_contention && options.network != sim::NetworkKind::fluid) {
    bad_input("unsupported", "the network simgrid has no HBM that NPUs could share: it is for the network fluid");
  }
  if (options.hbm_contention && options.faults != nullptr) {
    bad_input("unsupported",
              "faults do not go with HBM contention: kernels that share the HBM do not stop or slow down");
  }
  for (const StageProgram& stage : stages) {
    const models::Program& program = *stage.program;
    if (program.micro_batch_kernels == 0 || (program.gradients.empty() && !step.shape.forward_only)) {
      internal_error("a program needs kernels and gradients");
    }
  }
}

}  // namespace

ScheduleMaker schedule_maker(sim::Cluster& cluster, const device::Soc& soc, const StepSpec& step) {
  return [shop = std::make_shared<ScheduleShop>(cluster, soc, step)](
             const Communicator& group, const Operation& operation) { return shop->make(group, operation); };
}

Plan plan_training(sim::Cluster& cluster, const device::Soc& soc, const TrainingStep& training) {
  check_training(cluster, training);
  const StepSpec& step = training.step;
  const ScheduleMaker maker = schedule_maker(cluster, soc, step);
  Plan plan = make_plan(training.stages, step, maker);
  if (step.compression.has_value()) compress(plan, *step.compression, soc, maker);
  if (step.comm_reuse.has_value()) reuse_communication(plan, *step.comm_reuse);
  if (step.input.has_value()) add_input(plan, step.input->pipeline);
  if (step.checkpoints.has_value()) add_checkpoints(plan, *step.checkpoints);
  static_cast<void>(walk(plan));  // a Plan that cannot finish is refused before time runs
  return plan;
}

Seconds ideal_step(const Plan& plan, const device::TaskCosts& costs, const TrainingStep& training) {
  const StepSpec& step = training.step;
  const SimulationOptions& options = training.simulation;
  WalkPace pace{.kernel = step.host_launch.value_or(0)};
  for (Rank rank = 0; !options.skew.none() && rank < step.npus; ++rank) pace.speeds.push_back(options.skew.speed(rank));
  if (step.input.has_value()) pace.samples_per_second = step.input->samples_per_second;
  if (step.launch == LaunchMode::op) {
    pace.call = [&costs](Collective collective) { return costs.issue.base_for(name_of(collective)); };
  } else if (pace.kernel > 0) {
    pace.call = [call = pace.kernel](Collective /*collective*/) { return call; };
  }
  return walk(plan, options.iterations, pace).step;
}

TimedStep simulate_training(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                            const TrainingStep& training) {
  const SimulationOptions& options = training.simulation;
  TimedStep step = planned_step(cluster, soc, training);
  if (options.stream != nullptr) {
    step.trace.stream(options.stream->ranks, cluster.size(), [&step, &stream = *options.stream](const sim::Span& span) {
      stream.take(step.plan, step.trace, span);
    });
  }
  sim::FlowLog log{static_cast<std::int32_t>(options.iterations) - 1};
  // What has ended when the rank's last iteration begins does not reach into it.
  const auto drop_flows = [&log](Seconds begin) {
    std::erase_if(log.flows, [begin](const sim::Flow& flow) { return !flow.counts && flow.end <= begin; });
  };
  const SimulatedPlan plan{.cluster = cluster,
                           .soc = soc,
                           .costs = costs,
                           .step = training.step,
                           .options = options,
                           .plan = step.plan,
                           .trace = step.trace,
                           .on_end =
                               [&](std::span<const Seconds> ends) {
                                 step.iteration_ends.emplace_back(ends.begin(), ends.end());
                                 if (step.iteration_ends.size() + 1 == options.iterations) {
                                   drop_flows(ends[options.rank]);
                                 }
                                 return true;
                               },
                           .iterations = options.iterations,
                           .flows = options.record_flows ? &log : nullptr};
  Simulation simulation({&plan, 1});
  simulation.run();
  step.trace.end_stream();
  add_folded_and_idle(step, simulation, options, 0);
  if (options.record_flows && simulation.orbits() != nullptr) step.orbits = *simulation.orbits();
  add_figures(step, simulation.runtime(), cluster, training);
  step.flows = std::move(log.flows);
  return step;
}

std::vector<ConcurrentStep> simulate_together(std::span<const TrainingJob> jobs) {
  std::vector<ConcurrentStep> steps(jobs.size());
  std::vector<CarriedBytes> carried;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const TrainingJob& job = jobs[i];
    const auto own = static_cast<std::int32_t>(job.training.simulation.iterations);
    steps[i].step = planned_step(job.cluster, job.soc, job.training);
    steps[i].step.trace.end_before(own);
    carried.push_back({own - 1, std::vector<double>(job.cluster.links().size())});
  }
  std::size_t busy = jobs.size();  // jobs that have not done their own steps
  Seconds all_done = 0;            // when none is left
  Simulation* running = nullptr;
  std::vector<SimulatedPlan> plans;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto on_end = [&jobs, &steps, &busy, &all_done, &running, i](std::span<const Seconds> ends) {
      const TrainingJob& job = jobs[i];
      const std::uint32_t own = job.training.simulation.iterations;
      ConcurrentStep& one = steps[i];
      constexpr double rounding = 1e-12;
      const Seconds end = *std::ranges::max_element(ends);
      if (busy == 0 && end > all_done * (1 + rounding)) return false;  // it was under way when the last job ended
      if (one.steps < own) one.step.iteration_ends.emplace_back(ends.begin(), ends.end());
      if (++one.steps == own) {
        add_figures(one.step, running->runtime(i), job.cluster, job.training);
        if (--busy == 0) all_done = end;
      }
      if (one.steps >= own) running->runtime(i).forget_collectives();
      return busy > 0 && !running->any_stands_still();
    };
    plans.push_back({.cluster = jobs[i].cluster,
                     .soc = jobs[i].soc,
                     .costs = jobs[i].costs,
                     .step = jobs[i].training.step,
                     .options = jobs[i].training.simulation,
                     .plan = steps[i].step.plan,
                     .trace = steps[i].step.trace,
                     .on_end = on_end,
                     .iterations = std::numeric_limits<std::int32_t>::max(),
                     .job = jobs[i].name,
                     .carried = &carried[i]});
  }
  Simulation simulation(plans);
  running = &simulation;
  simulation.run();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    add_folded_and_idle(steps[i].step, simulation, jobs[i].training.simulation, i);
    steps[i].carried = std::move(carried[i].of_links);
  }
  return steps;
}

Plan plan_start_up(sim::Cluster& cluster, const device::Soc& soc, const StepSpec& step,
                   const std::vector<StartUp>& stages) {
  return start_up_plan(stages, step.npus, schedule_maker(cluster, soc, step));
}

Seconds simulate_start_up(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                          const TrainingStep& training, const Plan& plan) {
  SimulationOptions once = training.simulation;
  once.iterations = 1;
  once.skew = {};
  once.faults.reset();  // their dates are those of the steps
  sim::Trace trace;     // of no rank
  Seconds end = 0;
  const IterationEnd on_end = [&end](std::span<const Seconds> ends) {
    end = *std::ranges::max_element(ends);
    return true;
  };
  const SimulatedPlan one{.cluster = cluster,
                          .soc = soc,
                          .costs = costs,
                          .step = training.step,
                          .options = once,
                          .plan = plan,
                          .trace = trace,
                          .on_end = on_end};
  Simulation({&one, 1}).run();
  return end;
}

void simulate_iterations(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                         const TrainingStep& training, const IterationEnd& use) {
  const Plan plan = plan_training(cluster, soc, training);
  sim::Trace trace;  // of no rank
  Runtime* runtime = nullptr;
  const SimulatedPlan one{.cluster = cluster,
                          .soc = soc,
                          .costs = costs,
                          .step = training.step,
                          .options = training.simulation,
                          .plan = plan,
                          .trace = trace,
                          .on_end =
                              [&](std::span<const Seconds> ends) {
                                runtime->forget_collectives();
                                return use(ends);
                              },
                          .iterations = training.simulation.iterations};
  Simulation simulation({&one, 1});
  runtime = &simulation.runtime();
  simulation.run();
}

Seconds simulate_step_time(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                           const TrainingStep& training) {
  std::vector<std::vector<Seconds>> ends;
  simulate_iterations(cluster, soc, costs, training, [&](std::span<const Seconds> of_ranks) {
    ends.push_back(latest_of_pipelines({of_ranks.begin(), of_ranks.end()}, training.step));
    return true;
  });
  const Rank rank = training.simulation.rank;
  return mean_step(ends, rank, pipeline_start(training, rank));
}

}  // namespace hcclsim::hccl
