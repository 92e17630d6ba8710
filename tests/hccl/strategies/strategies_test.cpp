#include "hccl/strategies/strategies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hccl/parallel/sharding/shard_graph.hpp"
#include "hccl/strategies/costs/candidates.hpp"
#include "hccl/strategies/dynamic/dynamic_programming.hpp"
#include "hccl/strategies/exact.hpp"
#include "hccl/strategies/recursive/recursive_programming.hpp"
#include "hccl/strategies/sharding_propagation.hpp"
#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using models::GraphBuilder;
using testing::HasSubstr;

models::Graph network(const std::string& name) {
  models::ModelOptions options{.name = name, .batch = 16};
  if (name == "gpt2-small" || name == "bert-base" || name == "llama2-7b") {
    options.layers = 2;
    options.hidden = 128;
    options.heads = 8;
    options.sequence = 64;
    options.vocabulary = 512;
  }
  return models::make_model(options);
}

const std::vector<std::string> networks{"resnet18",   "lenet",     "vgg16",     "mlp:64,128,64", "tinygpt",
                                        "gpt2-small", "bert-base", "wide-deep", "deepfm"};

SearchOptions over(Rank devices) {
  SearchOptions options;
  options.devices = devices;
  return options;
}

NetworkStrategies chosen(const models::Graph& graph, const CostGraph& costs, const Choice& choice, Rank devices) {
  NetworkStrategies strategies;
  for (std::size_t id = 0; id < graph.operators.size(); ++id) {
    strategies.parts.push_back(costs.nodes[id].candidates[choice[id]]);
  }
  share_parameters(graph, searched_operators(graph), devices, std::vector<bool>(graph.operators.size(), false),
                   strategies.parts);
  return strategies;
}

/// What does not fit together is refused by the rules of operators.
void expect_accepted(const models::Graph& graph, const NetworkStrategies& strategies, Rank devices) {
  const ShardedGraph sharded = shard_graph(graph, strategy_map(graph, strategies), devices);
  EXPECT_EQ(sharded.devices, devices);
}

class Networks : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Zoo, Networks, testing::ValuesIn(networks), [](const auto& test) {
  std::string name = test.param;
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name;
});

TEST_P(Networks, TakeWhatRecursiveProgrammingFinds) {
  const models::Graph graph = network(GetParam());
  for (const Rank devices : {1U, 4U, 6U, 8U}) {
    expect_accepted(graph, recursive_programming(graph, {.devices = devices}).strategies, devices);
  }
}

TEST_P(Networks, TakeWhatDynamicProgrammingFinds) {
  const models::Graph graph = network(GetParam());
  for (const Rank devices : {1U, 4U, 8U}) {
    SearchOptions options = over(devices);
    options.device_memory = Bytes{1} << 40U;
    const CostGraph costs = make_cost_graph(graph, options);
    const DynamicProgrammingResult found = dynamic_programming(costs, options);
    expect_accepted(graph, chosen(graph, costs, found.choice, devices), devices);
    // Where nothing but chains and branches was folded, there is no better choice.
    if (found.folded.triangles + found.folded.stars > 0) continue;
    const ExactResult best = exact_search(costs, [&](const SearchCost& c) { return objective(c, options); }, {});
    EXPECT_TRUE(best.is_best());
    EXPECT_NEAR(objective(found.listed, options), best.cost, 1e-9 * best.cost);
    expect_accepted(graph, chosen(graph, costs, best.choice, devices), devices);
  }
}

TEST_P(Networks, TakeWhatPropagationSpreads) {
  const models::Graph graph = network(GetParam());
  const std::vector<SearchedOperator> operators = searched_operators(graph);
  for (const Rank devices : {2U, 8U}) {
    for (const SearchedOperator& op : operators) {
      if (op.parameters.empty() || op.id % 3 != 0) continue;
      const DimensionParts parts = candidates_of(op, over(devices)).back();
      const StrategyMap given{{graph.operators[op.id].name, strategy_of(op, parts)}};
      const PropagationResult result = sharding_propagation(graph, given, over(devices));
      EXPECT_EQ(result.strategies.parts[op.id], parts);
      expect_accepted(graph, result.strategies, devices);
    }
  }
}

/// Three products in a row with what is between them.
models::Graph three_products() {
  GraphBuilder builder("three products", {16, 32});
  models::OperatorId x = builder.linear("first", GraphBuilder::input(), 64, false);
  x = builder.linear("second", builder.relu("relu", x), 32, false);
  x = builder.linear("third", builder.gelu("gelu", x), 8, false);
  return std::move(builder).finish(x);
}

OperatorStrategy cuts(std::vector<Cuts> inputs) { return {.inputs = std::move(inputs)}; }

TEST(ShardingPropagation, SpreadsWithoutCommunication) {
  const models::Graph graph = three_products();
  const PropagationResult result =
      sharding_propagation(graph, {{"first", cuts({{1, 1}, {4, 1}})}, {"third", cuts({{4, 1}, {1, 1}})}}, over(4));
  const StrategyMap found = strategy_map(graph, result.strategies);
  EXPECT_EQ(to_string(found.at("relu")), "(1,4)");  // output features of the first one
  EXPECT_EQ(to_string(found.at("gelu")), "(1,1)");  // the sum of the second one; slices would be computed
  EXPECT_EQ(to_string(found.at("second")), "(1,4), (1,4)");
  EXPECT_EQ(to_string(found.at("first")), "(1,1), (4,1)");
  EXPECT_EQ(to_string(found.at("loss")), "(4,1)");
}

TEST(ShardingPropagation, WarnsWhereStrategiesDoNotMeet) {
  const models::Graph graph = three_products();
  const PropagationResult result =
      sharding_propagation(graph, {{"first", cuts({{1, 1}, {4, 1}})}, {"relu", cuts({{4, 1}})}}, over(4));
  EXPECT_THAT(result.warnings, testing::Contains(HasSubstr("between first and relu: their strategies do not meet")));
}

TEST(ShardingPropagation, KeepsOutputsThatAreGiven) {
  const models::Graph graph = three_products();
  OperatorStrategy scattered = cuts({{1, 4}, {1, 4}});
  scattered.output = Cuts{4, 1};
  const PropagationResult result = sharding_propagation(graph, {{"second", scattered}}, over(4));
  EXPECT_EQ(to_string(strategy_map(graph, result.strategies).at("second")), "(1,4), (1,4) -> (4,1)");
  expect_accepted(graph, result.strategies, 4);
}

TEST(ShardingPropagation, RefusesWhatItCannotBeginWith) {
  const models::Graph graph = three_products();
  const auto refused = [&](std::string_view kind, const StrategyMap& given) {
    return test::refusal(kind, [&] { (void)sharding_propagation(graph, given, over(4)); });
  };
  EXPECT_THAT(refused("search", {}), HasSubstr("give at least one of them one"));
  EXPECT_THAT(refused("search", {{"fourth", cuts({{1, 1}})}}), HasSubstr("'fourth'"));
  EXPECT_THAT(refused("search", {{graph.operators.front().name, cuts({{4, 1}})}}), HasSubstr("can have a strategy"));
  EXPECT_THAT(refused("strategy", {{"first", cuts({{3, 1}, {1, 1}})}}), HasSubstr("first"));
}

TEST(ShardingPropagation, RefusesGivenStrategiesThatCutASharedParameterDifferently) {
  const models::Graph graph = network("gpt2-small");
  const StrategyMap apart{{"wte", cuts({{1, 1}, {8, 1}})}, {"head", cuts({{1, 1}, {8, 1}})}};
  EXPECT_THAT(test::refusal("search", [&] { (void)sharding_propagation(graph, apart, over(8)); }),
              HasSubstr("wte.weight"));
  // One of them alone takes the other one along.
  const PropagationResult result = sharding_propagation(graph, {{"head", cuts({{1, 1}, {8, 1}})}}, over(8));
  EXPECT_EQ(to_string(strategy_map(graph, result.strategies).at("wte")), "(8,1), (1,1)");
}

TEST(FollowedNeighbours, SpreadsLayoutsOfTheMostDevicesFirst) {
  const models::Graph graph = three_products();
  const std::vector<SearchedOperator> operators = searched_operators(graph);
  std::vector<std::optional<DimensionParts>> parts(operators.size());
  parts[1] = DimensionParts{2, 1, 1};  // first, over two of four devices
  parts[3] = DimensionParts{1, 4, 1};  // second, over all
  follow_neighbours(graph, operators, 4, parts);
  // The ReLU has a producer that uses two devices, and a reader that uses four.
  EXPECT_EQ(*parts[2], (DimensionParts{1, 4}));
  // Behind the sum of the second one nothing is cut: it is decided by its producer all the same.
  EXPECT_EQ(*parts[4], (DimensionParts{1, 1}));
}

TEST(FollowedNeighbours, AreBatchParallelWhereNobodyReachesThem) {
  const models::Graph graph = three_products();
  const std::vector<SearchedOperator> operators = searched_operators(graph);
  std::vector<std::optional<DimensionParts>> parts(operators.size());
  follow_neighbours(graph, operators, 8, parts);
  EXPECT_EQ(*parts[1], (DimensionParts{8, 1, 1}));
}

}  // namespace
}  // namespace hcclsim::hccl
