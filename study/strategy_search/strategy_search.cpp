#include "study/strategy_search/strategy_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "models/zoo/zoo.hpp"
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
      const hccl::TimedStep step = experiment.simulate(experiment.training);
      StrategyTrial trial{.name = name, .step = step.step_times[experiment.training.rank]};
      trial.hbm_peak = experiment.hbm.peak();
      if (experiment.stages.has_value()) {
        for (const device::HbmAccount& account : experiment.stages->hbm) {
          trial.hbm_peak = std::max(trial.hbm_peak, account.peak());
        }
      }
      trial.fits = trial.hbm_peak <= experiment.soc.hbm_bytes;
      return trial;
    });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
    return {.name = name, .refused = error.what()};
  }
}

/// What is compared: what was found, all batch parallel, and transformers as they are usually cut.
std::vector<std::pair<std::string, OperatorParallel>> trials_of(const StrategySearchSpec& spec,
                                                                const models::Graph& network, Rank devices,
                                                                const hccl::StrategyMap& found) {
  const OperatorParallel none = plain_run(spec).parallel.operators;
  std::vector<std::pair<std::string, OperatorParallel>> trials;
  trials.emplace_back(name_of(spec.mode), none);
  trials.back().second.found = found;
  trials.emplace_back("data parallel", none);
  const hccl::WholeGraph whole(network);
  const auto last = static_cast<models::OperatorId>(network.operators.size() - 1);
  trials.back().second.found[network.operators[last].name] = hccl::batch_parallel(whole.signature(last), devices);
  const PlannedNetwork planned = planned_network(network);
  for (std::uint32_t model = 2; model <= devices && planned.heads % model == 0 && planned.heads > 0; model *= 2) {
    if (devices % model != 0) break;
    trials.emplace_back(fmt::format("model parallel {}", model), none);
    trials.back().second.model = model;
  }
  return trials;
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
  FoundMap found = find_strategies(network, spec, result.devices, result.stages);
  result.found = std::move(found.found);
  if (!spec.save.empty()) {
    const std::vector<std::uint32_t> stages(network.operators.size(), 0);
    write_strategies(spec.save,
                     {.nodes = node_strategies(network, found.strategies, result.devices, stages), .parameters = {}});
  }
  if (!spec.simulates) return result;
  for (auto& [name, operators] : trials_of(spec, network, result.devices, found.strategies)) {
    stage(fmt::format("simulating {}", name));
    run.parallel.operators = std::move(operators);
    result.compared.push_back(simulate_trial(name, run));
  }
  return result;
}

}  // namespace hcclsim::study
