#include "study/compare/strategies/strategy_seconds.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "device/program.hpp"
#include "hccl/parallel/layout/redistribution.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "hccl/parallel/step_plan.hpp"
#include "hccl/runtime/simulate.hpp"
#include "hccl/strategies/strategies.hpp"
#include "hccl/training/training.hpp"

namespace hcclsim::study {
namespace {

using hccl::DimensionParts;
using models::OperatorId;

using Groups = std::vector<std::vector<Rank>>;

/// Of collectives that all their groups carry out at the same time.
class CollectiveSeconds {
 public:
  explicit CollectiveSeconds(Experiment& on)
      : on_(on), make_schedule_(schedule_maker(on.cluster, on.soc, on.training.step)) {}

  [[nodiscard]] const hccl::ScheduleMaker& schedules() const { return make_schedule_; }

  Seconds of(const std::vector<std::shared_ptr<const hccl::Schedule>>& schedules, const Groups& groups) {
    const auto [known, is_new] = known_.try_emplace({schedules.front().get(), groups}, 0);
    if (!is_new) return known->second;
    std::vector<hccl::CollectiveCall> calls;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      calls.push_back({.name = "group",
                       .schedule = schedules[group],
                       .ranks = groups[group],
                       .stream = static_cast<std::uint32_t>(group)});
    }
    const hccl::SimulateOptions options{.launch = on_.training.step.launch, .fold = true};
    for (const hccl::CollectiveTime& call :
         simulate_collectives(on_.cluster, on_.soc, on_.costs, options, calls).calls) {
      known->second = std::max(known->second, call.per_iteration);
    }
    return known->second;
  }

  Seconds of(const hccl::Operation& operation, const Groups& groups) {
    std::vector<std::shared_ptr<const hccl::Schedule>> schedules;
    for (const std::vector<Rank>& ranks : groups) schedules.push_back(make_schedule_({"group", ranks}, operation));
    return of(schedules, groups);
  }

 private:
  Experiment& on_;
  hccl::ScheduleMaker make_schedule_;  // keeps the schedules
  std::map<std::pair<const hccl::Schedule*, Groups>, Seconds> known_;
};

hccl::Operation operation_of_step(const hccl::RedistributionStep& step, DataType type) {
  const bool gathers = step.kind == hccl::RedistributionKind::all_gather;
  hccl::Operation operation{.ranks = step.ranks(), .type = type};
  operation.collective = gathers                                             ? hccl::Collective::allgather
                         : step.kind == hccl::RedistributionKind::all_to_all ? hccl::Collective::alltoall
                                                                             : hccl::Collective::reduce_scatter;
  operation.elements = step.before.elements() / (gathers ? 1 : step.ranks());
  operation.in_place = false;
  return operation;
}

/// A network in which each operator has its parameters for itself, so that any strategies go with each other.
models::Graph untied(models::Graph network) {
  std::vector<bool> taken(network.parameters.size(), false);
  for (OperatorId id = 0; id < network.operators.size(); ++id) {
    for (std::uint32_t& parameter : network.operators[id].parameters) {
      if (taken[parameter]) {
        models::Parameter own = network.parameters[parameter];
        own.owner = id;
        parameter = static_cast<std::uint32_t>(network.parameters.size());
        network.parameters.push_back(std::move(own));
        taken.push_back(false);
      }
      taken[parameter] = true;
    }
  }
  return network;
}

/// What an operator takes with a candidate.
struct CandidateSeconds {
  Seconds all = 0;
  Seconds computed = 0;  ///< by its kernels in the passes
};

/// Times operators: in each round all of them have another of their candidates.
class OperatorSeconds {
 public:
  OperatorSeconds(const models::Graph& network, const hccl::SearchOptions& options, const RunSpec& run, Experiment& on,
                  CollectiveSeconds& collectives)
      : network_(untied(network)),
        options_(options),
        how_(options_of_program(run, on.npus)),
        on_(on),
        collectives_(collectives) {}

  /// Of every candidate of every operator.
  std::vector<std::vector<CandidateSeconds>> of(const std::vector<hccl::CostNode>& nodes) {
    std::vector<std::vector<CandidateSeconds>> seconds;
    std::size_t rounds = 0;
    for (OperatorId id = 0; id < network_.operators.size(); ++id) {
      seconds.emplace_back(nodes[id].candidates.size());
      rounds = std::max(rounds, nodes[id].candidates.size());
    }
    for (std::size_t round = 0; round < rounds; ++round) {
      hccl::NetworkStrategies strategies;
      for (OperatorId id = 0; id < network_.operators.size(); ++id) {
        strategies.parts.push_back(nodes[id].candidates[round % nodes[id].candidates.size()]);
      }
      strategies.outputs.resize(strategies.parts.size());
      const std::vector<CandidateSeconds> found = of(strategies);
      for (OperatorId id = 0; id < network_.operators.size(); ++id) {
        seconds[id][round % seconds[id].size()] = found[id];
      }
    }
    return seconds;
  }

 private:
  /// Of every operator.
  std::vector<CandidateSeconds> of(const hccl::NetworkStrategies& strategies) {
    const hccl::ShardedGraph sharded = shard_graph(network_, strategy_map(network_, strategies), options_.devices,
                                                   {.enable_alltoall = options_.enable_alltoall});
    std::vector<std::string> ignored;
    hccl::StageProgram program =
        hccl::fuse_communication(make_program(sharded.graph, on_.soc, how_, ignored),
                                 {.allreduce = {.mode = hccl::FusionMode::none}}, false, sharded.mirrors);
    program.families = sharded.families;
    program.cut = true;
    const hccl::StepSpec step{.framework = hccl::Framework::mindspore, .npus = options_.devices, .hcom_parallel = true};
    const hccl::Plan plan = hccl::make_plan({&program, 1}, step, collectives_.schedules());
    std::vector<CandidateSeconds> seconds(network_.operators.size());
    const auto add = [&](OperatorId op, Seconds time, bool computes) {
      if (op == models::no_original) return;
      seconds[op].all += time;
      if (computes) seconds[op].computed += time;
    };
    const models::Program& kernels = *program.program;
    for (const hccl::PlanTask& task : plan.roles.front().tasks) {
      if (const auto* block = std::get_if<hccl::KernelBlock>(&task.work)) {
        for (std::uint32_t k = block->first; k < block->first + block->count; ++k) {
          const models::Kernel& kernel = kernels.kernels[k];
          add(owner_of(sharded.graph, kernels, kernel), kernel.duration, computes(kernel));
        }
      } else if (const auto* call = std::get_if<hccl::CollectiveTask>(&task.work)) {
        const hccl::PlannedCollective& collective = plan.collectives[call->collective];
        const Seconds time = collectives_.of(collective.schedules, groups_of(plan.families[collective.family]));
        if (task.kernel != hccl::Purpose::none) {
          add(owner_of(sharded.graph, kernels, kernels.kernels[task.kernel]), time, false);
        } else if (collective.segment != hccl::Purpose::none) {
          const models::Gradient& gradient = kernels.gradients[program.reductions[collective.segment].segment.first];
          add(sharded.graph.operators[sharded.graph.parameters[gradient.parameter].owner].original, time, false);
        }
      }
    }
    return seconds;
  }

  static Groups groups_of(const hccl::GroupFamily& family) {
    Groups groups;
    for (const hccl::Communicator& group : family.groups) groups.push_back(group.ranks);
    return groups;
  }

  /// Whether it runs on the compute stream in every pass, whoever shares its parameters.
  static bool computes(const models::Kernel& kernel) {
    return kernel.op != models::no_operator && kernel.kind != models::KernelClass::host &&
           kernel.launched == models::Launched::always;
  }

  /// The operator of the whole network whose strategy decides what a kernel takes; none: what is between two of them.
  static OperatorId owner_of(const models::Graph& graph, const models::Program& program, const models::Kernel& kernel) {
    if (kernel.op == models::no_operator) {
      if (kernel.gradient == models::no_gradient) return models::no_original;
      return graph.operators[graph.parameters[program.gradients[kernel.gradient].parameter].owner].original;
    }
    const models::Operator& op = graph.operators[kernel.op];
    const bool sums = op.kind == models::OperatorKind::all_reduce || op.kind == models::OperatorKind::reduce_scatter;
    if (op.original != models::no_original || !sums) return op.original;
    return graph.operators[op.inputs.front().op].original;
  }

  models::Graph network_;
  const hccl::SearchOptions& options_;
  device::ProgramOptions how_;
  Experiment& on_;
  CollectiveSeconds& collectives_;
};

}  // namespace

StrategySeconds costs_in_seconds(const models::Graph& network, const hccl::SearchOptions& options,
                                 const std::function<std::optional<DimensionParts>(OperatorId)>& fixed,
                                 const RunSpec& run, Experiment& on) {
  CollectiveSeconds collectives(on);
  const auto seconds_of = [&](const std::vector<hccl::RedistributionStep>& steps, DataType type) {
    Seconds seconds = 0;
    for (const hccl::RedistributionStep& step : steps) {
      if (communicates(step.kind)) {
        seconds += collectives.of(operation_of_step(step, type), step.groups());
      } else if (step.kind != hccl::RedistributionKind::reshape) {
        const auto moved = static_cast<double>((step.before.elements() + step.after.elements()) * size_of(type));
        seconds += moved / on.soc.hbm_bandwidth;
      }
    }
    return seconds;
  };
  StrategySeconds result;
  result.costs = make_cost_graph(
      network, options, fixed,
      [&](const std::vector<hccl::RedistributionStep>& steps, DataType type, bool trained, double memory) {
        const Seconds backward = trained ? seconds_of(backward_of(steps), type) : 0;
        return hccl::SearchCost{.computation = seconds_of(steps, type) + backward, .memory = memory};
      });
  const std::vector<std::vector<CandidateSeconds>> seconds =
      OperatorSeconds(network, options, run, on, collectives).of(result.costs.nodes);
  for (std::size_t id = 0; id < seconds.size(); ++id) {
    std::vector<Seconds>& computed = result.computed.emplace_back();
    for (std::size_t candidate = 0; candidate < seconds[id].size(); ++candidate) {
      hccl::SearchCost& cost = result.costs.nodes[id].costs[candidate];
      cost = {.computation = seconds[id][candidate].all, .memory = cost.memory};
      computed.push_back(seconds[id][candidate].computed);
    }
  }
  return result;
}

}  // namespace hcclsim::study
