#include "study/strategy_search/strategy_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "models/zoo/zoo.hpp"
#include "study/plan_search/plan_search.hpp"
#include "study/plan_search/planned_network.hpp"
#include "study/run/run.hpp"
#include "study/strategy/operator_strategies.hpp"
#include "study/strategy_search/find_strategies.hpp"

namespace hcclsim::study {
namespace {

constexpr std::uint32_t samples_per_npu = 8;
constexpr std::array<std::pair<StrategySearchMode, std::string_view>, 4> mode_names{
    {{StrategySearchMode::recursive_programming, "recursive_programming"},
     {StrategySearchMode::sharding_propagation, "sharding_propagation"},
     {StrategySearchMode::dynamic_programming, "dynamic_programming"},
     {StrategySearchMode::exact, "exact"}}};

/// What a search has to know of the run.
struct SearchedRun {
  std::string platform;
  std::string npu;
  Rank npus = 0;
  std::uint32_t micro_batch = 0;  ///< samples of a device
};

/// The run with a number of samples, and without anything that cuts operators.
RunSpec plain_run(const StrategySearchSpec& spec) {
  RunSpec run = spec.run;
  if (!run.parallel.batch_given && !run.parallel.global_batch.has_value()) run.model.batch = samples_per_npu;
  run.parallel.operators = {};
  run.parallel.operators.all_to_all = spec.options.enable_alltoall;
  run.hbm_check = device::HbmCheck::warn;
  return run;
}

SearchedRun look_at(const RunSpec& run) {
  return on_cluster(run.platform, [&](sim::Cluster& cluster) {
    const Experiment experiment(run, cluster);
    return SearchedRun{platform_name(cluster.path()), std::string(experiment.soc.name), experiment.npus,
                       experiment.batch.micro_batch};
  });
}

StrategyTrial simulate_trial(const std::string& name, const RunSpec& run) {
  try {
    return on_experiment(run, [&](Experiment& experiment) {
      const Bytes peak = hbm_peak(experiment);
      return StrategyTrial{
          .name = name, .step = simulated_step(experiment), .hbm_peak = peak, .fits = peak <= experiment.soc.hbm_bytes};
    });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
    return {.name = name, .refused = error.what()};
  }
}

/// What is compared.
using Trials = std::vector<std::pair<std::string, OperatorParallel>>;

/// What the searches find that the exact one judges; what they cannot do is left out.
std::vector<std::pair<std::string, hccl::StrategyMap>> judged(const StrategySearchSpec& spec,
                                                              const models::Graph& network, Rank devices,
                                                              std::uint32_t stages) {
  std::vector<std::pair<std::string, hccl::StrategyMap>> others;
  StrategySearchSpec other = spec;
  for (const auto& [mode, name] : mode_names) {
    other.mode = mode;
    const bool begins = mode != StrategySearchMode::sharding_propagation || !spec.given.empty();
    // Strategies that are given are not to be changed.
    const bool keeps = mode != StrategySearchMode::recursive_programming || spec.given.empty();
    if (mode == spec.mode || !begins || !keeps) continue;
    try {
      others.emplace_back(name, find_strategies(network, other, devices, stages).strategies);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal) throw;
    }
  }
  return others;
}

/// What was found, for the exact search what others find, all batch parallel, and transformers as they are usually cut.
Trials trials_of(const StrategySearchSpec& spec, const models::Graph& network, Rank devices, std::uint32_t stages,
                 const hccl::StrategyMap& found) {
  const OperatorParallel none = plain_run(spec).parallel.operators;
  Trials trials;
  const auto add = [&](std::string_view name, const hccl::StrategyMap& strategies) {
    trials.emplace_back(name, none);
    trials.back().second.found = strategies;
  };
  add(name_of(spec.mode), found);
  if (spec.mode == StrategySearchMode::exact) {
    for (const auto& [name, strategies] : judged(spec, network, devices, stages)) add(name, strategies);
  }
  const hccl::WholeGraph whole(network);
  const auto last = static_cast<models::OperatorId>(network.operators.size() - 1);
  add("data parallel", {{network.operators[last].name, hccl::batch_parallel(whole.signature(last), devices)}});
  const PlannedNetwork planned = planned_network(network);
  for (std::uint32_t model = 2; model <= devices && planned.heads % model == 0 && planned.heads > 0; model *= 2) {
    if (devices % model != 0) break;
    trials.emplace_back(fmt::format("model parallel {}", model), none);
    trials.back().second.model = model;
  }
  return trials;
}

/// The search; the exact one on the platform.
FoundMap find(const models::Graph& network, const StrategySearchSpec& spec, const RunSpec& run,
              const StrategySearchResult& on) {
  if (spec.mode != StrategySearchMode::exact) return find_strategies(network, spec, on.devices, on.stages);
  return on_experiment(run, [&](Experiment& experiment) {
    StrategySearchSpec exact = spec;
    exact.run = run;
    if (!spec.memory_given) exact.options.device_memory = experiment.soc.hbm_bytes;
    return find_strategies(network, exact, on.devices, on.stages, &experiment);
  });
}

/// The sum of what operators take one after the other is not quite the step: if strategies of another search are faster
/// as a whole, they are what was found. `compared` are the trials with their steps.
void take_faster(const models::Graph& network, const Trials& trials, FoundMap& found,
                 std::vector<StrategyTrial>& compared) {
  const auto step_of = [&](std::size_t number) {
    const StrategyTrial& trial = compared[number];
    const bool is_choice = trials[number].second.found.size() + 1 >= network.operators.size();
    return trial.refused.empty() && trial.fits && is_choice ? trial.step : std::numeric_limits<Seconds>::infinity();
  };
  std::size_t best = 0;
  for (std::size_t number = 1; number < trials.size(); ++number) {
    if (step_of(number) < step_of(best)) best = number;
  }
  if (best == 0) return;
  found.found.notes.push_back(fmt::format(
      "the strategies of the least sum take {:.6g} s as a whole, those of {} only {:.6g} s: these are given",
      compared.front().step, trials[best].first, compared[best].step));
  found.strategies = trials[best].second.found;
  found.found.strategies.clear();
  for (const models::Operator& op : network.operators) {
    const auto strategy = found.strategies.find(op.name);
    if (strategy != found.strategies.end()) {
      found.found.strategies.emplace_back(op.name, hccl::to_string(strategy->second));
    }
  }
  compared.front() = compared[best];
  compared.front().name = name_of(StrategySearchMode::exact);
}

}  // namespace

std::string_view name_of(StrategySearchMode mode) {
  return std::ranges::find(mode_names, mode, &std::pair<StrategySearchMode, std::string_view>::first)->second;
}

std::optional<StrategySearchMode> strategy_search_mode(std::string_view name) {
  const auto* const found =
      std::ranges::find(mode_names, name, &std::pair<StrategySearchMode, std::string_view>::second);
  if (found == mode_names.end()) return std::nullopt;
  return found->first;
}

StrategySearchResult search_strategies(const StrategySearchSpec& spec, const Stage& stage) {
  if (spec.save.ends_with(".toml")) {
    bad_input("option", "--save {}: strategies are saved as MindSpore's checkpoint; name it .json, or anything else",
              spec.save);
  }
  if (spec.mode == StrategySearchMode::sharding_propagation && spec.given.empty()) {
    bad_input("search",
              "sharding_propagation begins at operators with a strategy: give --given FILE with at least one");
  }
  RunSpec run = plain_run(spec);
  const SearchedRun facts = look_at(run);
  StrategySearchResult result{.mode = spec.mode,
                              .network = {},
                              .platform = facts.platform,
                              .npu = facts.npu,
                              .npus = facts.npus,
                              .stages = run.parallel.shape.stages,
                              .devices = run.parallel.devices(facts.npus),
                              .samples = 0,
                              .found = {},
                              .compared = {}};
  models::ModelOptions sizes = run.model;
  sizes.batch = facts.micro_batch * result.devices;
  const models::Graph network = models::make_model(sizes);
  result.network = network.title;
  result.samples = sizes.batch;
  stage(fmt::format("searching strategies by {}", name_of(spec.mode)));
  FoundMap found = find(network, spec, run, result);
  if (spec.simulates) {
    Trials trials = trials_of(spec, network, result.devices, result.stages, found.strategies);
    for (const auto& [name, operators] : trials) {
      stage(fmt::format("simulating {}", name));
      run.parallel.operators = operators;
      result.compared.push_back(simulate_trial(name, run));
    }
    if (spec.mode == StrategySearchMode::exact) take_faster(network, trials, found, result.compared);
  }
  if (!spec.save.empty()) {
    const std::vector<std::uint32_t> stages(network.operators.size(), 0);
    write_strategies(spec.save,
                     {.nodes = node_strategies(network, found.strategies, result.devices, stages), .parameters = {}});
  }
  result.found = std::move(found.found);
  return result;
}

}  // namespace hcclsim::study
