#include "tests/support/training/random_strategies.hpp"

#include <map>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "models/graph_builder.hpp"

namespace hcclsim::test {
namespace {

using hccl::Dimension;
using hccl::OperatorStrategy;
using hccl::Signature;
using hccl::StrategyMap;
using hccl::WholeGraph;

/// Cuts of a random operator: powers of two, as many parts as devices at most.
OperatorStrategy random_strategy(const WholeGraph& whole, models::OperatorId id, Rank devices, std::mt19937& random) {
  const Signature signature = whole.signature(id);
  std::map<std::string_view, std::uint32_t> cuts;
  Rank left = devices;
  for (int tries = 0; tries < 4; ++tries) {
    const Dimension& dimension = signature.dimensions[random() % signature.dimensions.size()];
    if (!dimension.whole.empty() || cuts.contains(dimension.name)) continue;
    const std::uint32_t cut = 1U << random() % 4;
    if (cut > left) continue;
    cuts[dimension.name] = cut;
    left /= cut;
  }
  return strategy_of(signature, cuts);
}

}  // namespace

models::Graph tokens_network() {
  models::GraphBuilder builder = models::GraphBuilder::of_tokens("tokens", 8, 8);
  models::OperatorId x = builder.token_embedding("table", models::GraphBuilder::input(), 16, 32);
  x = builder.position_embedding("positions", x);
  const models::OperatorId normed = builder.layer_norm("norm", x);
  models::OperatorId branch = builder.linear("qkv", normed, 96, true);
  branch = builder.attention("core", branch, {.heads = 8, .causal = true});
  branch = builder.linear("proj", branch, 32, true);
  x = builder.add("sum", branch, x);
  branch = builder.gelu("act", builder.linear("wide", x, 64, true));
  x = builder.add("sum_2", builder.linear("narrow", branch, 32, true), x);
  const auto head = builder.tied_linear("head", x, 1, false);
  return std::move(builder).finish(head);
}

models::Graph images_network() {
  models::GraphBuilder builder("images", {8, 4, 16, 16});
  models::OperatorId x = builder.convolution("conv1", models::GraphBuilder::input(),
                                             {.channels = 8, .window = {.kernel = 3, .padding = 1}, .bias = true});
  x = builder.relu("relu1", builder.batch_norm("bn1", x));
  x = builder.max_pool("pool", x, {.kernel = 3, .stride = 2, .padding = 1});
  const models::OperatorId shortcut =
      builder.convolution("conv3", x, {.channels = 16, .window = {.kernel = 1, .stride = 2}});
  x = builder.convolution("conv2", x, {.channels = 16, .window = {.kernel = 5, .stride = 2, .padding = 2}});
  x = builder.relu("relu2", builder.add("sum", x, shortcut));
  x = builder.flatten("flat", builder.average_pool("mean", x, 1));
  const auto head = builder.linear("fc", x, 8, true);
  return std::move(builder).finish(head);
}

StrategyMap random_strategies(const models::Graph& graph, Rank devices, std::mt19937& random) {
  const WholeGraph whole(graph);
  StrategyMap strategies;
  for (models::OperatorId id = 1; id < graph.operators.size(); ++id) {
    for (int tries = 0; tries < 20; ++tries) {
      const OperatorStrategy strategy = random_strategy(whole, id, devices, random);
      try {
        (void)shard_operator(whole, id, &strategy, devices);
      } catch (const Error&) {
        continue;
      }
      strategies[graph.operators[id].name] = strategy;
      break;
    }
  }
  return strategies;
}

}  // namespace hcclsim::test
