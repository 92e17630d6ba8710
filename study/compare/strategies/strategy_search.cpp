#include "study/compare/strategies/strategy_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "hccl/parallel/sharding/presets.hpp"
#include "hccl/strategies/exact.hpp"
#include "hccl/strategies/strategies.hpp"
#include "models/zoo/zoo.hpp"
#include "study/compare/plans/plan_search.hpp"
#include "study/compare/plans/planned_network.hpp"
#include "study/compare/strategies/least_choice.hpp"
#include "study/compare/strategies/strategy_seconds.hpp"
#include "study/compare/sweep/sweep.hpp"
#include "study/files/strategy/operator_strategies.hpp"
#include "study/run/experiment/sharding/find_strategies.hpp"
#include "study/run/run.hpp"

namespace hcclsim::study {
namespace {

constexpr std::uint32_t samples_per_npu = 8;

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
  run.parallel.operators.search.reset();
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

/// Strategies that are simulated under a name.
struct NamedStrategies {
  std::string name;
  hccl::StrategyMap strategies;
};

/// Simulates steps with strategies, as many at a time as there are processors.
std::vector<StrategyTrial> simulated(const RunSpec& plain, const std::vector<NamedStrategies>& trials) {
  const auto simulate = [&](const NamedStrategies& trial) -> StrategyTrial {
    RunSpec run = plain;
    run.parallel.operators.found = trial.strategies;
    try {
      return on_experiment(run, [&](Experiment& experiment) {
        const Bytes peak = hbm_peak(experiment);
        return StrategyTrial{.name = trial.name,
                             .step = simulated_step(experiment),
                             .hbm_peak = peak,
                             .fits = peak <= experiment.soc.hbm_bytes};
      });
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal) throw;
      return {.name = trial.name, .refused = error.what()};
    }
  };
  std::vector<StrategyTrial> results;
  for (std::size_t begin = 0; begin < trials.size(); begin += processors()) {
    std::vector<ChildOf<StrategyTrial>> children;
    for (std::size_t i = begin; i < std::min(begin + processors(), trials.size()); ++i) {
      children.emplace_back([&simulate, &trial = trials[i]] { return simulate(trial); });
    }
    for (ChildOf<StrategyTrial>& child : children) results.push_back(child.result());
  }
  return results;
}

/// The step where it counts: infinite without one, or if it does not fit.
Seconds step_of(const StrategyTrial& trial) {
  return trial.refused.empty() && trial.fits ? trial.step : std::numeric_limits<Seconds>::infinity();
}

class StrategySearcher {
 public:
  StrategySearcher(const StrategySearchSpec& spec, const Stage& stage)
      : spec_(spec), stage_(stage), run_(plain_run(spec)), facts_(look_at(run_)), devices_(run_.devices(facts_.npus)) {
    models::ModelOptions sizes = run_.model;
    sizes.batch = facts_.micro_batch * devices_;
    network_ = models::make_model(sizes);
    search_ = {.mode = spec.mode, .options = spec.options};
    if (!spec.given.empty()) {
      search_.given = read_operator_strategies(spec.given, network_, devices_, notes_).strategies;
      if (spec.mode == StrategySearchMode::exact) require_whole_sums();
    }
  }

  StrategySearchResult search() && {
    stage_(fmt::format("searching strategies by {}", name_of(spec_.mode)));
    FoundMap found = spec_.mode == StrategySearchMode::exact ? exact() : by(search_);
    if (spec_.simulates && spec_.mode != StrategySearchMode::exact) {
      std::vector<NamedStrategies> trials = usual();
      trials.insert(trials.begin(), {std::string(name_of(spec_.mode)), found.strategies});
      compare(trials);
    }
    if (!spec_.simulates) compared_.clear();
    save(found.strategies);
    found.found.notes.insert(found.found.notes.begin(), notes_.begin(), notes_.end());
    return {.mode = spec_.mode,
            .network = network_.title,
            .platform = facts_.platform,
            .npu = facts_.npu,
            .npus = facts_.npus,
            .stages = run_.step.shape.stages,
            .devices = devices_,
            .samples = network_.batch(),
            .found = std::move(found.found),
            .compared = std::move(compared_)};
  }

 private:
  [[nodiscard]] FoundMap by(const StrategySearch& search) const {
    return find_strategies(network_, search, devices_, run_.step.shape.stages);
  }

  void compare(const std::vector<NamedStrategies>& trials) {
    stage_(fmt::format("simulating {} and others", trials.front().name));
    std::ranges::move(simulated(run_, trials), std::back_inserter(compared_));
  }

  void require_whole_sums() const {
    for (const auto& [name, strategy] : search_.given) {
      const bool of_layout = strategy.layout.has_value() && strategy.layout->output.has_value();
      if (!strategy.output.has_value() && !of_layout) continue;
      bad_input("search",
                "{}: the exact search knows no out_strategy, which '{}' has; leave it out, or search by "
                "dynamic programming",
                spec_.given, name);
    }
  }

  /// All batch parallel, and transformers as they are usually cut.
  [[nodiscard]] std::vector<NamedStrategies> usual() const {
    const hccl::WholeGraph whole(network_);
    const auto last = static_cast<models::OperatorId>(network_.operators.size() - 1);
    std::vector<NamedStrategies> trials{
        {"data parallel", {{network_.operators[last].name, hccl::batch_parallel(whole.signature(last), devices_)}}}};
    const PlannedNetwork planned = planned_network(network_);
    for (std::uint32_t model = 2; model <= devices_ && planned.heads % model == 0 && planned.heads > 0; model *= 2) {
      if (devices_ % model != 0) break;
      trials.push_back({fmt::format("model parallel {}", model),
                        hccl::transformer_strategies(network_, {.data = devices_ / model, .model = model})});
    }
    return trials;
  }

  /// What the searches find that the exact one judges, but for those that cannot do it, or do not keep to what is
  /// given: the recursive search decides about every operator, whatever memory there is.
  [[nodiscard]] std::vector<NamedStrategies> judged() const {
    using enum StrategySearchMode;
    std::vector<StrategySearchMode> modes{dynamic_programming};
    if (!search_.given.empty()) modes.push_back(sharding_propagation);
    if (is_free()) modes.push_back(recursive_programming);
    std::vector<NamedStrategies> trials;
    StrategySearch other = search_;
    for (const StrategySearchMode mode : modes) {
      other.mode = mode;
      try {
        trials.push_back({std::string(name_of(mode)), by(other).strategies});
      } catch (const Error& error) {
        if (error.code() == ErrorCode::internal) throw;
      }
    }
    return trials;
  }

  /// Whether any strategies may be found.
  [[nodiscard]] bool is_free() const { return search_.given.empty() && !spec_.memory_given; }

  /// What the exact search chooses from.
  struct Candidates {
    StrategySeconds seconds;
    Bytes hbm = 0;
  };

  /// Bounds are those of the whole step: of all micro-batches, and of a rank of one of the stages.
  [[nodiscard]] Candidates candidates(const std::vector<std::optional<hccl::DimensionParts>>& fixed) const {
    hccl::SearchOptions options = spec_.options;
    options.devices = devices_;
    return on_experiment(run_, [&](Experiment& experiment) {
      const auto given = [&](models::OperatorId id) { return fixed[id]; };
      Candidates found{costs_in_seconds(network_, options, given, run_, experiment), experiment.soc.hbm_bytes};
      const double passes = least_kernel_factor(experiment) * experiment.batch.micro_batches / run_.step.shape.stages;
      for (std::vector<Seconds>& of_operator : found.seconds.computed) {
        for (Seconds& computed : of_operator) computed *= passes;
      }
      return found;
    });
  }

  /// The least simulated step. What has the least sum of operators and redistributions, what others find and what is
  /// usual are where the search begins.
  FoundMap exact() {
    const auto fixed = hccl::given_parts(network_, search_.given, devices_);
    std::vector<bool> settled;
    for (const auto& parts : fixed) settled.push_back(parts.has_value());
    const Candidates space = candidates(fixed);
    const hccl::CostGraph& costs = space.seconds.costs;
    const auto strategies_of = [&](const hccl::Choice& choice) {
      return strategies_of_choice(network_, costs, choice, settled, devices_);
    };
    const Bytes memory = spec_.memory_given ? spec_.options.device_memory : space.hbm;
    const hccl::ExactResult sum = exact_search(costs, [](const hccl::SearchCost& cost) { return cost.computation; },
                                               {.memory = static_cast<double>(memory)});
    std::vector<NamedStrategies> trials = judged();
    trials.push_back({"least sum", strategies_of(sum.choice)});
    const std::size_t of_searches = trials.size();
    std::ranges::move(usual(), std::back_inserter(trials));
    compare(trials);

    std::vector<KnownChoice> known;
    std::size_t best = 0;
    for (std::size_t i = 0; i < (is_free() ? trials.size() : of_searches); ++i) {
      const Seconds step = step_of(compared_[i]);
      if (step < step_of(compared_[best])) best = i;
      // Strategies may say more than a choice, such as where a sum is scattered.
      const auto choice = choice_of(costs, trials[i].strategies);
      if (choice.has_value() && strategies_of(*choice) == trials[i].strategies) known.push_back({*choice, step});
    }
    constexpr std::uint64_t simulated_operators = 4096;
    ChoiceSpace choices{.costs = costs,
                        .least = space.seconds.computed,
                        .most = std::max<std::uint64_t>(64, simulated_operators / network_.operators.size())};
    if (spec_.memory_given) choices.memory = static_cast<double>(memory);
    const LeastChoice least =
        least_choice(choices, known, step_of(compared_[best]), [&, done = std::size_t{0}](const auto& asked) mutable {
          stage_(fmt::format("simulating strategies, {} so far", done += asked.size()));
          std::vector<NamedStrategies> some;
          for (const hccl::Choice& choice : asked) some.push_back({"", strategies_of(choice)});
          std::vector<Seconds> steps;
          for (const StrategyTrial& trial : simulated(run_, some)) steps.push_back(step_of(trial));
          return steps;
        });
    return found(least.best.has_value() ? strategies_of(least.best->choice) : trials[best].strategies, least);
  }

  /// The candidates that strategies are, if all are some.
  [[nodiscard]] std::optional<hccl::Choice> choice_of(const hccl::CostGraph& costs,
                                                      const hccl::StrategyMap& strategies) const {
    const auto parts = hccl::given_parts(network_, strategies, devices_);
    hccl::Choice choice(parts.size(), 0);
    for (std::size_t op = 0; op < parts.size(); ++op) {
      if (!parts[op].has_value()) {
        if (costs.nodes[op].candidates.size() > 1) return std::nullopt;
        continue;
      }
      const auto& candidates = costs.nodes[op].candidates;
      const auto at = std::ranges::find(candidates, *parts[op]);
      if (at == candidates.end()) return std::nullopt;
      choice[op] = static_cast<std::uint32_t>(at - candidates.begin());
    }
    return choice;
  }

  FoundMap found(hccl::StrategyMap strategies, const LeastChoice& least) {
    const std::vector<NamedStrategies> best{{std::string(name_of(spec_.mode)), strategies}};
    compared_.insert(compared_.begin(), simulated(run_, best).front());
    FoundMap result{.strategies = std::move(strategies), .found = {}};
    result.found.cost = compared_.front().step;
    const bool fits = step_of(compared_.front()) < std::numeric_limits<Seconds>::infinity();
    if (!fits) notes_.emplace_back("no strategies are known that fit into HBM; these do not, either");
    result.found.bound = fits ? std::min(least.bound, result.found.cost) : 0;
    result.found.candidates = least.simulated;
    result.found.strategies = strategy_texts(network_, result.strategies);
    return result;
  }

  void save(const hccl::StrategyMap& strategies) const {
    if (spec_.save.empty()) return;
    const std::vector<std::uint32_t> stages(network_.operators.size(), 0);
    write_strategies(spec_.save, {.nodes = node_strategies(network_, strategies, devices_, stages), .parameters = {}});
  }

  const StrategySearchSpec& spec_;
  const Stage& stage_;
  RunSpec run_;  ///< without strategies
  SearchedRun facts_;
  Rank devices_;  ///< of a stage
  models::Graph network_;
  StrategySearch search_;
  std::vector<std::string> notes_;
  std::vector<StrategyTrial> compared_;
};

}  // namespace

StrategySearchResult search_strategies(const StrategySearchSpec& spec, const Stage& stage) {
  if (spec.save.ends_with(".toml")) {
    bad_input("option", "--save {}: strategies are saved as MindSpore's checkpoint; name it .json, or anything else",
              spec.save);
  }
  if (spec.mode == StrategySearchMode::sharding_propagation && spec.given.empty()) {
    bad_input("search",
              "sharding_propagation begins at operators with a strategy: give --given FILE with at least one");
  }
  return StrategySearcher(spec, stage).search();
}

}  // namespace hcclsim::study
