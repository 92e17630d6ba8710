#pragma once

#include "hccl/parallel/sharding/strategy.hpp"
#include "models/graph.hpp"
#include "study/experiment/experiment.hpp"
#include "study/strategy_search/strategy_search.hpp"

/// The search alone.
namespace hcclsim::study {

struct FoundMap {
  hccl::StrategyMap strategies;
  FoundStrategies found;
};

/// `network` has the samples of a micro-batch over all devices of a stage. The exact search counts seconds on the
/// platform of `on`, an experiment without strategies; without one it counts what dynamic programming does. Throws what
/// the searches throw.
[[nodiscard]] FoundMap find_strategies(const models::Graph& network, const StrategySearchSpec& spec, Rank devices,
                                       std::uint32_t stages, Experiment* on = nullptr);

}  // namespace hcclsim::study
