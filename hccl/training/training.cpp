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
#include "hccl/parallel/data_parallel.hpp"
#include "hccl/runtime/runtime.hpp"
#include "hccl/training/executor.hpp"
#include "hccl/training/simulation.hpp"

namespace hcclsim::hccl {
namespace {

/// Groups of one shape and split are one family, so that each collective of a family has one algorithm.
std::vector<ReplicaGroups> replica_groups(sim::Cluster& cluster, const TrainingOptions& options) {
  if (options.groups.empty()) return all_replicas(options.npus, options.segments);
  std::vector<ReplicaGroups> all;
  std::vector<Topology> shapes;
  for (const ReplicaGroup& group : options.groups) {
    const Topology shape = topology_of(group.ranks, cluster);
    std::size_t same = 0;
    while (same < all.size() && (shapes[same] != shape || all[same].segments != group.segments)) ++same;
    if (same == all.size()) {
      all.push_back({group.segments, {}});
      shapes.push_back(shape);
    }
    all[same].family.groups.push_back(group.ranks);
  }
  return all;
}

/// Schedules as the options and HCCL choose them; groups of one shape share them.
class ScheduleShop {
 public:
  ScheduleShop(sim::Cluster& cluster, const device::Soc& soc, const TrainingOptions& options)
      : cluster_(cluster), soc_(soc), options_(options) {}

  std::shared_ptr<const Schedule> make(const Communicator& group, const Operation& operation) {
    const Topology& shape = shape_of(group, operation);
    std::vector<Made>& alike = made_[operation.payload()];
    for (const Made& made : alike) {
      if (made.operation == operation && made.shape == shape) return made.schedule;
    }
    CollectiveRequest request = options_.allreduce_request(operation.elements, operation.type);
    request.operation = operation;
    if (operation.collective != Collective::allreduce) {
      request.algorithm = Algorithm::automatic;
      request.levels.clear();
    }
    alike.push_back({shape, operation, make_collective(request, shape, soc_)});
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
  const TrainingOptions& options_;
  Topology of_message_{.ranks = 2};
  std::map<std::vector<Rank>, Topology> shapes_;       // of groups, by their ranks
  std::unordered_map<Bytes, std::vector<Made>> made_;  // by payload
};

/// Which communication operators of a program without stages name.
std::vector<GroupFamily> families_of(const models::Program& program, Rank ranks) {
  const auto communicates = [](const models::Kernel& kernel) {
    return kernel.kind == models::KernelClass::communication;
  };
  if (std::ranges::none_of(program.kernels, communicates)) return {};
  return {{{world_communicator(ranks)}}};
}

Plan plan_of_device(sim::Cluster& cluster, const std::shared_ptr<const models::Program>& program,
                    const device::Soc& soc, const TrainingOptions& options) {
  const ScheduleMaker maker = schedule_maker(cluster, soc, options);
  if (!options.stages.empty()) {
    Plan plan = parallel_plan(options.stages,
                              {.shape = options.shape,
                               .ranks = options.npus,
                               .shard_ranks = options.shard_ranks,
                               .overlap = options.hcom_parallel,
                               .pad_segments = options.pad_segments,
                               .update_stream = options.has_update_stream(),
                               .results = options.results,
                               .result_type = options.result_type,
                               .dealt = options.dealt},
                              maker);
    static_cast<void>(walk(plan));  // a Plan that cannot finish is refused before time runs
    return plan;
  }
  Plan plan = data_parallel_plan(program,
                                 {.ranks = options.npus,
                                  .micro_batches = options.micro_batches,
                                  .replicas = replica_groups(cluster, options),
                                  .hcom_parallel = options.hcom_parallel,
                                  .update_stream = options.has_update_stream(),
                                  .pad_segments = options.pad_segments,
                                  .families = families_of(*program, options.npus)},
                                 maker);
  if (options.compression.has_value()) compress(plan, *options.compression, soc, maker);
  return plan;
}

Plan make_plan(sim::Cluster& cluster, const std::shared_ptr<const models::Program>& program, const device::Soc& soc,
               const TrainingOptions& options) {
  Plan plan = plan_of_device(cluster, program, soc, options);
  if (options.comm_reuse.has_value()) reuse_communication(plan, *options.comm_reuse);
  if (options.input.has_value()) add_input(plan, options.input->pipeline);
  if (options.checkpoints.has_value()) add_checkpoints(plan, *options.checkpoints);
  return plan;
}

/// Whether a rank is in the group of a collective whose first rank is `first`.
bool together(const Plan& plan, std::uint32_t collective, Rank first, Rank rank) {
  const std::vector<Communicator>& groups = plan.families[plan.collectives[collective].family].groups;
  return std::any_of(groups.begin(), groups.end(), [&](const Communicator& group) {
    return group.ranks.front() == first && std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
  });
}

/// What took most of the time of each collective in its last iteration, for a rank that came to it at its own date.
std::vector<Bottleneck> bottlenecks_of(const Plan& plan, const Runtime& runtime, const sim::Trace& trace,
                                       const sim::Cluster& cluster, const TrainingOptions& options) {
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
std::vector<Seconds> latest_of_pipelines(const std::vector<Seconds>& ends, const TrainingOptions& options) {
  if (options.shape.stages == 1) return ends;
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
std::uint64_t transfers_of(const Runtime& runtime, const TrainingOptions& options) {
  std::uint64_t transfers = 0;
  for (const CollectiveStats& stats : runtime.collectives()) {
    if (stats.id.iteration < static_cast<std::int32_t>(options.iterations)) transfers += stats.transfers * stats.groups;
  }
  return transfers;
}

std::vector<Rank> traced_ranks(const TrainingOptions& options) {
  std::vector<Rank> traced = options.traced;
  traced.push_back(options.rank);
  return traced;
}

/// What there is of a step before it is simulated: when its last iteration has ended, add_figures() adds the rest.
TimedStep planned_step(sim::Cluster& cluster, const std::shared_ptr<const models::Program>& program,
                       const device::Soc& soc, const TrainingOptions& options) {
  TimedStep step;
  step.plan = plan_training(cluster, program, soc, options);
  step.trace.select(traced_ranks(options), cluster.size(), options.trace_tasks);
  if (options.merges_kernels) step.trace.merge_kernels_before(static_cast<std::int32_t>(options.iterations) - 1);
  return step;
}

void add_figures(TimedStep& step, const Runtime& runtime, const sim::Cluster& cluster, const TrainingOptions& options) {
  step.trace.end_host_at(*std::ranges::max_element(step.iteration_ends.back()));
  step.transfers = transfers_of(runtime, options);
  for (const std::vector<Seconds>& ends : step.iteration_ends) {
    step.pipeline_ends.push_back(latest_of_pipelines(ends, options));
  }
  for (Rank rank = 0; rank < options.npus; ++rank) {
    step.step_times.push_back(mean_step(step.pipeline_ends, rank, pipeline_start(options, rank)));
  }
  step.bottlenecks = bottlenecks_of(step.plan, runtime, step.trace, cluster, options);
}

/// Ranks that others stand for, and faults over whose links nothing goes.
void add_folded_and_idle(TimedStep& step, const Simulation& simulation, const TrainingOptions& options,
                         std::size_t job) {
  if (options.faults != nullptr) step.idle_faults = simulation.links(job).idle(*options.faults);
  const RankOrbits* orbits = simulation.orbits(job);
  if (orbits == nullptr) return;
  step.folded = orbits->classes();
  add_spans_of_images(*orbits, traced_ranks(options), step.trace);
}

void check_options(const models::Program& program, const sim::Cluster& cluster, const TrainingOptions& options) {
  if (options.npus == 0 || options.npus > cluster.size()) {
    bad_input("option", "{} NPUs asked for, the platform has {}", options.npus, cluster.size());
  }
  if (options.rank >= options.npus) {
    bad_input("option", "rank {} does not take part; ranks are 0 to {}", options.rank, options.npus - 1);
  }
  for (const Rank rank : options.traced) {
    if (rank >= options.npus) {
      bad_input("option", "traced rank {} does not take part; ranks are 0 to {}", rank, options.npus - 1);
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
  for (const models::Kernel& kernel : program.micro_batch()) {
    if (!options.stages.empty() || kernel.kind != models::KernelClass::communication) continue;
    const models::CommunicationWork& work = *kernel.communication;
    if (work.kind == models::OperatorKind::all_reduce && work.group.ranks == options.npus) continue;
    bad_input("unsupported",
              "{}: in a training step of data parallelism operators sum over all {} ranks, or do not communicate",
              kernel.name, options.npus);
  }
  if (program.micro_batch_kernels == 0 || (program.gradients.empty() && !options.shape.forward_only)) {
    internal_error("a program needs kernels and gradients");
  }
  if (!options.stages.empty()) return;
  if (options.segments.empty() || options.segments.back().last + 1 != program.gradients.size()) {
    internal_error("the segments do not cover the {} gradients", program.gradients.size());
  }
}

}  // namespace

ScheduleMaker schedule_maker(sim::Cluster& cluster, const device::Soc& soc, const TrainingOptions& options) {
  return [shop = std::make_shared<ScheduleShop>(cluster, soc, options)](
             const Communicator& group, const Operation& operation) { return shop->make(group, operation); };
}

Plan plan_training(sim::Cluster& cluster, const std::shared_ptr<const models::Program>& program, const device::Soc& soc,
                   const TrainingOptions& options) {
  check_options(*program, cluster, options);
  return make_plan(cluster, program, soc, options);
}

PlanWalk ideal_walk(const Plan& plan, const device::TaskCosts& costs, const TrainingOptions& options) {
  HostPace host{.kernel = options.host_launch.value_or(0)};
  if (options.input.has_value()) host.samples_per_second = options.input->samples_per_second;
  if (options.launch == LaunchMode::op) {
    host.call = [&costs](Collective collective) { return costs.issue.base_for(name_of(collective)); };
  } else if (host.kernel > 0) {
    host.call = [call = host.kernel](Collective /*collective*/) { return call; };
  }
  return walk(plan, options.iterations, host);
}

TimedStep simulate_training(sim::Cluster& cluster, const std::shared_ptr<const models::Program>& program,
                            const device::Soc& soc, const device::TaskCosts& costs, const TrainingOptions& options) {
  TimedStep step = planned_step(cluster, program, soc, options);
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
  add_figures(step, simulation.runtime(), cluster, options);
  step.flows = std::move(log.flows);
  return step;
}

std::vector<ConcurrentStep> simulate_together(std::span<const TrainingJob> jobs) {
  std::vector<ConcurrentStep> steps(jobs.size());
  std::vector<CarriedBytes> carried;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const TrainingJob& job = jobs[i];
    const auto own = static_cast<std::int32_t>(job.options.iterations);
    steps[i].step = planned_step(job.cluster, job.program, job.soc, job.options);
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
      ConcurrentStep& one = steps[i];
      constexpr double rounding = 1e-12;
      const Seconds end = *std::ranges::max_element(ends);
      if (busy == 0 && end > all_done * (1 + rounding)) return false;  // it was under way when the last job ended
      if (one.steps < job.options.iterations) one.step.iteration_ends.emplace_back(ends.begin(), ends.end());
      if (++one.steps == job.options.iterations) {
        add_figures(one.step, running->runtime(i), job.cluster, job.options);
        if (--busy == 0) all_done = end;
      }
      if (one.steps >= job.options.iterations) running->runtime(i).forget_collectives();
      return busy > 0 && !running->any_stands_still();
    };
    plans.push_back({.cluster = jobs[i].cluster,
                     .soc = jobs[i].soc,
                     .costs = jobs[i].costs,
                     .options = jobs[i].options,
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
    add_folded_and_idle(steps[i].step, simulation, jobs[i].options, i);
    steps[i].carried = std::move(carried[i].of_links);
  }
  return steps;
}

Plan plan_start_up(sim::Cluster& cluster, const device::Soc& soc, const TrainingOptions& options,
                   const std::vector<StartUp>& stages) {
  ScheduleShop shop(cluster, soc, options);
  return start_up_plan(stages, options.npus, [&shop](const Communicator& group, const Operation& operation) {
    return shop.make(group, operation);
  });
}

Seconds simulate_start_up(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                          const TrainingOptions& options, const Plan& plan) {
  TrainingOptions once = options;
  once.iterations = 1;
  once.skew = {};
  once.faults.reset();  // their dates are those of the steps
  sim::Trace trace;     // of no rank
  Seconds end = 0;
  const IterationEnd on_end = [&end](std::span<const Seconds> ends) {
    end = *std::ranges::max_element(ends);
    return true;
  };
  const SimulatedPlan one{
      .cluster = cluster, .soc = soc, .costs = costs, .options = once, .plan = plan, .trace = trace, .on_end = on_end};
  Simulation({&one, 1}).run();
  return end;
}

void simulate_iterations(sim::Cluster& cluster, const std::shared_ptr<const models::Program>& program,
                         const device::Soc& soc, const device::TaskCosts& costs, const TrainingOptions& options,
                         const IterationEnd& use) {
  check_options(*program, cluster, options);
  const Plan plan = make_plan(cluster, program, soc, options);
  sim::Trace trace;  // of no rank
  Runtime* runtime = nullptr;
  const SimulatedPlan one{.cluster = cluster,
                          .soc = soc,
                          .costs = costs,
                          .options = options,
                          .plan = plan,
                          .trace = trace,
                          .on_end =
                              [&](std::span<const Seconds> ends) {
                                runtime->forget_collectives();
                                return use(ends);
                              },
                          .iterations = options.iterations};
  Simulation simulation({&one, 1});
  runtime = &simulation.runtime();
  simulation.run();
}

Seconds simulate_step_time(sim::Cluster& cluster, const std::shared_ptr<const models::Program>& program,
                           const device::Soc& soc, const device::TaskCosts& costs, const TrainingOptions& options) {
  std::vector<std::vector<Seconds>> ends;
  simulate_iterations(cluster, program, soc, costs, options, [&](std::span<const Seconds> of_ranks) {
    ends.push_back(latest_of_pipelines({of_ranks.begin(), of_ranks.end()}, options));
    return true;
  });
  return mean_step(ends, options.rank, pipeline_start(options, options.rank));
}

}  // namespace hcclsim::hccl
