#include "study/run/split_search/fusion_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>
#include <tuple>
#include <utility>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "hccl/parallel/plan/plan_walk.hpp"
#include "sim/cluster.hpp"
#include "study/platform/shipped_platforms.hpp"
#include "study/run/experiment/experiment.hpp"
#include "study/run/experiment/stages.hpp"

namespace hcclsim::study {
namespace {

using hccl::FusionMode;
using hccl::FusionRule;
using hccl::FusionRules;

/// The step of a rule, simulated.
struct SimulatedRules {
  Seconds step = 0;
  std::uint32_t collectives = 0;
};

constexpr std::array kinds{&FusionRules::allreduce, &FusionRules::reduce_scatter, &FusionRules::allgather};

std::uint32_t collectives_of(const std::vector<hccl::StageProgram>& stages) {
  std::size_t count = 0;
  for (const hccl::StageProgram& stage : stages) count += stage.reductions.size() + stage.gathers.size();
  return static_cast<std::uint32_t>(count);
}

class FusionTuner {
 public:
  FusionTuner(const RunSpec& run, sim::Cluster& cluster, const Stage& stage)
      : stage_(stage),
        cluster_(cluster),
        experiment_(run, cluster_),
        run_(experiment_.spec_on_placed()),
        given_(asked_rules(run.parallel)) {
    if (experiment_.data_parallel) internal_error("fusion of a run of data parallelism");
    if (run.step.shape.forward_only) {
      bad_input("option", "--forward-only: no gradients are reduced, and nothing is to be fused");
    }
    if (collectives_of(experiment_.training.stages) == 0 || experiment_.training.step.stage_ranks() == 1) {
      bad_input("option", "a stage has one replica: there are no gradients to reduce, and nothing is to be fused");
    }
  }

  FusionSearch search() {
    try_all(candidates());
    for (const auto kind : kinds) {
      if (!uses(kind)) continue;
      std::vector<FusionRules> others;
      for (const FusionRule& rule : rules_of_kind()) {
        others.push_back(best().rules);
        others.back().*kind = rule;
      }
      try_all(others);
    }
    return described();
  }

 private:
  /// Whether a rule of this kind decides about collectives.
  [[nodiscard]] bool uses(FusionRule FusionRules::*kind) const {
    // MindSpore's reduce-scatters follow the allgathers.
    if (kind == &FusionRules::reduce_scatter && reduces_as_gathered(run_.parallel, experiment_.training.step.shape)) {
      return false;
    }
    return std::ranges::any_of(experiment_.training.stages, [&](const hccl::StageProgram& stage) {
      if (kind == &FusionRules::allgather) return !stage.gathers.empty();
      const bool scattered = kind == &FusionRules::reduce_scatter;
      return std::ranges::any_of(stage.reductions,
                                 [&](const hccl::Reduction& reduction) { return reduction.scattered == scattered; });
    });
  }

  /// Sizes up to that of all parameters of a stage, in fp32.
  [[nodiscard]] std::vector<FusionRule> rules_of_kind() const {
    Bytes most = 0;
    for (const hccl::StageProgram& stage : experiment_.training.stages) {
      Bytes bytes = 0;
      for (const models::ParameterShare& share : stage.program->parameters) bytes += share.elements * sizeof(float);
      most = std::max(most, bytes);
    }
    std::vector<FusionRule> rules{{.mode = FusionMode::none}};
    for (Bytes size = Bytes{1} << 20U; size < most; size *= 2) rules.push_back({.threshold = size});
    rules.push_back({.mode = FusionMode::all});
    return rules;
  }

  [[nodiscard]] std::vector<FusionRules> candidates() const {
    std::vector<FusionRules> rules{given_};
    for (const FusionRule& rule : rules_of_kind()) rules.push_back({rule, rule, rule});
    return rules;
  }

  /// Simulates what was not simulated yet, as many at a time as there are processors.
  void try_all(const std::vector<FusionRules>& wanted) {
    std::vector<FusionRules> rules;
    for (const FusionRules& one : wanted) {
      const bool known = std::ranges::find(trials_, one, &FusionTrial::rules) != trials_.end() ||
                         std::ranges::find(rules, one) != rules.end();
      if (!known) rules.push_back(one);
    }
    const std::size_t together = std::max(1U, std::thread::hardware_concurrency());
    for (std::size_t first = 0; first < rules.size(); first += together) {
      std::vector<ChildOf<SimulatedRules>> children;
      const std::size_t end = std::min(first + together, rules.size());
      for (std::size_t i = first; i < end; ++i) children.push_back(start(rules[i]));
      for (std::size_t i = first; i < end; ++i) {
        const SimulatedRules simulated = children[i - first].result();
        trials_.push_back({rules[i], simulated.collectives, simulated.step});
        stage_(fmt::format("simulating rules of fusion, {} so far", trials_.size()));
      }
    }
    sort_trials();
  }

  void sort_trials() {
    const Seconds equal = std::ranges::min(trials_, {}, &FusionTrial::step).step * (1 + FusionSearch::equal_steps);
    std::ranges::stable_sort(trials_, {}, [&](const FusionTrial& trial) {
      const bool mixed =
          trial.rules.allreduce != trial.rules.reduce_scatter || trial.rules.reduce_scatter != trial.rules.allgather;
      const bool is_least = trial.step <= equal;
      return std::tuple(!is_least, is_least ? trial.collectives : 0, is_least ? mixed : false, trial.step,
                        trial.collectives);
    });
  }

  [[nodiscard]] ChildOf<SimulatedRules> start(const FusionRules& rules) {
    return ChildOf<SimulatedRules>([this, rules] {
      RunSpec spec = run_;
      spec.parallel.fusion = rules;
      Experiment experiment(spec, cluster_);
      const hccl::TimedStep step = experiment.simulate(experiment.training);
      return SimulatedRules{step.step_times[experiment.training.simulation.rank],
                            collectives_of(experiment.training.stages)};
    });
  }

  [[nodiscard]] const FusionTrial& best() const { return trials_.front(); }

  /// Tensors that travel alone wait for nothing but themselves.
  [[nodiscard]] std::optional<Seconds> bound() {
    const device::SkewOptions& skew = run_.skew;
    if (skew.jitter > 0 || skew.start_skew > 0 || skew.speed_spread > 0 || !skew.speeds.empty()) return std::nullopt;
    RunSpec spec = run_;
    const FusionRule alone{.mode = FusionMode::none};
    spec.parallel.fusion = FusionRules{alone, alone, alone};
    Experiment experiment(spec, cluster_);
    const Seconds least = ideal_step(experiment.plan(), experiment.costs, experiment.training);
    if (std::ranges::min(trials_, {}, &FusionTrial::step).step < least) return std::nullopt;
    return least;
  }

  [[nodiscard]] FusionSearch described() {
    FusionSearch result{.model = experiment_.model,
                        .platform = platform_name(cluster_.path()),
                        .npu = experiment_.soc.name,
                        .npus = experiment_.npus,
                        .shape = experiment_.training.step.shape,
                        .replicas = experiment_.replicas,
                        .sharing = std::string(name_of(experiment_.spec.parallel.optimizer.kind)),
                        .hbm_contention = experiment_.training.simulation.hbm_contention,
                        .trials = trials_,
                        .given = *std::ranges::find(trials_, given_, &FusionTrial::rules),
                        .notes = experiment_.notes};
    result.bound = bound();
    return result;
  }

  const Stage& stage_;
  sim::Cluster& cluster_;
  Experiment experiment_;
  const RunSpec run_;  // of the runs that are tried
  FusionRules given_;
  std::vector<FusionTrial> trials_;
};

}  // namespace

std::optional<double> FusionSearch::gap() const {
  if (!bound.has_value()) return std::nullopt;
  return (best().step - *bound) / *bound;
}

FusionSearch search_fusion(const RunSpec& run, sim::Cluster& cluster, const Stage& stage) {
  return FusionTuner(run, cluster, stage).search();
}

}  // namespace hcclsim::study
