#include "hccl/strategies/recursive/recursive_programming.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using models::GraphBuilder;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

RecursiveNode matmul_node(std::uint32_t i, std::uint32_t j, std::uint32_t k) {
  RecursiveNode node{.name = "matmul", .kind = MindSporeKind::matmul, .first = {}, .second = {}, .output = {}};
  node.first.shape = {1, 1, i, k};
  node.second.shape = {1, 1, k, j};
  node.output.shape = {1, 1, i, j};
  return node;
}

RecursiveNode node_of(MindSporeKind kind, const Nchw& shape) {
  RecursiveNode node{.name = "node", .kind = kind, .first = {}, .second = {}, .output = {}};
  node.first.shape = shape;
  node.output.shape = shape;
  return node;
}

/// "i 52428.8", …
std::vector<std::pair<std::string, double>> priced(const RecursiveNode& node, const HalvingRules& rules = {}) {
  std::vector<std::pair<std::string, double>> all;
  for (const PricedHalving& cut : halvings_of(node, rules)) all.emplace_back(cut.halving.name, cut.cost);
  return all;
}

testing::Matcher<std::pair<std::string, double>> cut(const char* name, double cost) {
  return testing::Pair(std::string(name), DoubleEq(cost));
}

/// What one halving of a lonely operator cuts.
RecursiveNode halved(RecursiveNode node) {
  RecursiveGraph graph;
  graph.nodes.push_back(std::move(node));
  return recursive_cuts(std::move(graph), 64, {.devices = 2}).graph.nodes.front();
}

TEST(Halving, PricesAMatMul) {
  EXPECT_THAT(priced(matmul_node(64, 1024, 1024)),
              ElementsAre(cut("i", 52428.8), cut("j", 32768), cut("k", 32768), cut("none", 32768.0 * 32768 / 25)));
  EXPECT_THAT(
      priced(matmul_node(4096, 1024, 1024)),
      ElementsAre(cut("i", 52428.8), cut("j", 2097152), cut("k", 2097152), cut("none", 52428.8 * 52428.8 / 25)));
  // The first of equals: j before k.
  EXPECT_EQ(halved(matmul_node(64, 1024, 1024)).second.parts, (Nchw{1, 1, 1, 2}));
  EXPECT_EQ(halved(matmul_node(4096, 1024, 1024)).first.parts, (Nchw{1, 1, 2, 1}));
}

TEST(Halving, RefusesOddAxesAndCutsThatExcludeEachOther) {
  EXPECT_THAT(priced(matmul_node(3, 5, 7)), ElementsAre(cut("none", 0.1 * 5 * 7 / 2 * (0.1 * 5 * 7 / 2) / 25)));
  RecursiveNode node = matmul_node(8, 8, 8);
  node.second.parts = {1, 1, 1, 2};  // j
  EXPECT_THAT(priced(node), ElementsAre(cut("i", 0.1 * 4 * 8 / 2), cut("j", 32), cut("none", 1.6 * 1.6 / 25)));
  node = matmul_node(8, 8, 8);
  node.first.parts = {1, 1, 1, 2};  // k
  node.second.parts = {1, 1, 2, 1};
  EXPECT_THAT(priced(node), ElementsAre(cut("i", 0.1 * 8 * 4 / 2), cut("k", 32), cut("none", 1.6 * 1.6 / 25)));
}

TEST(Halving, LeavesAPipelineASampleOfAMicroBatch) {
  const HalvingRules two{.micro_batch = 2};
  RecursiveNode node = matmul_node(64, 8, 8);
  EXPECT_EQ(priced(node, two).front().first, "i");
  node.first.parts = {1, 1, 2, 1};
  EXPECT_EQ(priced(node, two).front().first, "j");
}

TEST(Halving, PricesBatchMatMuls) {
  RecursiveNode node{.name = "scores", .kind = MindSporeKind::batch_matmul, .first = {}, .second = {}, .output = {}};
  node.first.shape = {4, 2, 16, 8};
  node.second.shape = {4, 2, 8, 16};
  node.output.shape = {4, 2, 16, 16};
  const double least = 0.15 * 1024 / 2;  // A and B have 1024 elements each, C 2048
  EXPECT_THAT(priced(node), ElementsAre(cut("samples", 3 * least), cut("channels", 3 * least - 1), cut("i", 512),
                                        cut("j", 512), cut("k", 1024), cut("none", least * least / 25)));
  // A single product: the factor is 32; many: 0.
  node.first.shape = {1, 1, 16, 8};
  node.second.shape = {1, 1, 8, 16};
  node.output.shape = {1, 1, 16, 16};
  EXPECT_THAT(priced(node).front(), cut("i", 64));
  node.first.shape = {64, 1, 16, 8};
  EXPECT_THAT(priced(node).front(), cut("samples", 0));
}

TEST(Halving, CutsOtherKindsWhereTheirRulesAllow) {
  RecursiveNode convolution = node_of(MindSporeKind::convolution, {32, 64, 7, 7});
  convolution.second.shape = {128, 64, 3, 3};
  EXPECT_THAT(priced(convolution), ElementsAre(cut("samples", 128 * 64 * 9 / 2.0)));
  convolution.first.shape = {31, 64, 7, 7};
  EXPECT_THAT(priced(convolution), testing::IsEmpty());
  EXPECT_THAT(priced(node_of(MindSporeKind::pooling, {2, 4, 8, 8})),
              ElementsAre(cut("samples", 0), cut("channels", 0)));
  EXPECT_THAT(priced(node_of(MindSporeKind::batch_norm, {1, 4, 8, 8})), ElementsAre(cut("channels", 0)));
  EXPECT_THAT(priced(node_of(MindSporeKind::loss, {1, 1, 8, 10})), ElementsAre(cut("height", 0)));
  EXPECT_THAT(priced(node_of(MindSporeKind::elementwise, {1, 3, 2, 10})),
              ElementsAre(cut("height", 0), cut("width", 0)));
  EXPECT_THAT(priced(node_of(MindSporeKind::reshape, {2, 2, 2, 2})), testing::IsEmpty());
  // The loss has one number, which is not cut.
  RecursiveNode loss = node_of(MindSporeKind::loss, {1, 1, 8, 10});
  loss.output.shape = {1, 1, 1, 1};
  EXPECT_EQ(halved(loss).output.parts, (Nchw{1, 1, 1, 1}));
}

TEST(Halving, CountsWhatDecidedNeighboursExchange) {
  RecursiveGraph graph;
  graph.nodes.push_back(matmul_node(64, 256, 32));
  graph.nodes.push_back(matmul_node(64, 16, 256));
  graph.nodes[0].out = {1};
  graph.nodes[1].into = {0};
  const Halving rows{.name = "i", .first = nchw_height, .second = {}, .output = nchw_height};
  const Halving columns{.name = "j", .first = {}, .second = nchw_width, .output = nchw_width};
  const Halving inner{.name = "k", .first = nchw_width, .second = nchw_height, .output = {}};
  // The second one has been cut by rows: the first one, cut by columns, hands over another layout.
  std::vector<std::optional<Halving>> decided{std::nullopt, rows};
  EXPECT_EQ(exchange_cost(graph, 0, rows, decided), 0);
  EXPECT_EQ(exchange_cost(graph, 0, columns, decided), 16.0 * 64 * 256);
  EXPECT_EQ(exchange_cost(graph, 0, inner, decided), 16.0 * 64 * 256);
  // Columns of one are the inner features of the other.
  decided[1] = inner;
  EXPECT_EQ(exchange_cost(graph, 0, columns, decided), 0);
  // From the other side: slices as they are now.
  graph.nodes[1].first.parts = {1, 1, 2, 1};
  EXPECT_EQ(exchange_cost(graph, 1, inner, {rows, std::nullopt}), 16.0 * 32 * 256);
  // Undecided, or another shape of the tensor between them.
  EXPECT_EQ(exchange_cost(graph, 1, inner, {std::nullopt, std::nullopt}), 0);
  graph.nodes[0].output.shape = {64, 256, 1, 1};
  EXPECT_EQ(exchange_cost(graph, 1, inner, {rows, std::nullopt}), 0);
}

models::Graph resnet50() { return models::make_model({.name = "resnet50", .batch = 256}); }

TEST(RecursiveGraphs, KeepWhatMindSporeSearches) {
  const RecursiveGraph graph = make_recursive_graph(resnet50());
  std::map<MindSporeKind, int> kinds;
  for (const RecursiveNode& node : graph.nodes) ++kinds[node.kind];
  // Input, 53 convolutions and batch norms, a pooling, the product at the end and the loss.
  EXPECT_THAT(kinds,
              ElementsAre(testing::Pair(MindSporeKind::virtual_dataset, 1), testing::Pair(MindSporeKind::matmul, 1),
                          testing::Pair(MindSporeKind::convolution, 53), testing::Pair(MindSporeKind::pooling, 1),
                          testing::Pair(MindSporeKind::batch_norm, 53), testing::Pair(MindSporeKind::loss, 1)));
  // 49 ReLUs, 16 additions, the mean over pixels, flatten and the bias.
  EXPECT_EQ(graph.eliminated, 49U + 16 + 3);
}

TEST(RecursiveGraphs, LinkWhatEliminatedOperatorsPassOn) {
  GraphBuilder builder("forked", {8, 16});
  const models::OperatorId first = builder.linear("first", GraphBuilder::input(), 16, false);
  const models::OperatorId relu = builder.relu("relu", first);
  const models::OperatorId second = builder.linear("second", relu, 16, false);
  const models::OperatorId sum = builder.add("add", second, relu);
  const auto head = builder.linear("third", sum, 4, false);
  const RecursiveGraph graph = make_recursive_graph(std::move(builder).finish(head));
  ASSERT_EQ(graph.nodes.size(), 5U);
  EXPECT_THAT(graph.nodes[3].into, ElementsAre(1U, 2U));
  EXPECT_THAT(graph.nodes[1].out, ElementsAre(2U, 3U));
  EXPECT_EQ(graph.eliminated, 2U);
  EXPECT_EQ(graph.nodes[1].second.shape, (Nchw{1, 1, 16, 16}));
}

TEST(RecursiveProgramming, CutsResNetBySamples) {
  const models::Graph graph = resnet50();
  const RecursiveProgrammingResult result = recursive_programming(graph, {.devices = 8});
  EXPECT_EQ(result.cuts.halvings, 3U);
  const StrategyMap strategies = strategy_map(graph, result.strategies);
  for (const RecursiveNode& node : result.cuts.graph.nodes) {
    EXPECT_TRUE(node.kind != MindSporeKind::convolution || node.first.parts == (Nchw{8, 1, 1, 1})) << node.name;
  }
  EXPECT_EQ(to_string(strategies.at("conv1")), "(8,1,1,1), (1,1,1,1)");
  // 256 × 1000 × 2048: the memory of the weight weighs least.
  EXPECT_EQ(to_string(strategies.at("fc")), "(8,1), (1,1), (1)");
  EXPECT_EQ(to_string(strategies.at("layer1.0.add")), "(8,1,1,1), (8,1,1,1)");
}

TEST(RecursiveProgramming, CutsWideProductsOfFewRows) {
  const models::Graph graph = models::make_model({.name = "mlp:4096,8192,4096", .batch = 8});
  const RecursiveProgrammingResult result = recursive_programming(graph, {.devices = 8});
  for (const std::string name : {"fc1", "fc2"}) {
    const DimensionParts parts = result.strategies.parts[name == "fc1" ? 1 : 3];
    EXPECT_GE(parts[1] * parts[2], 4U) << name;
  }
}

TEST(RecursiveProgramming, RollsBackThePipeline) {
  const models::Graph graph = resnet50();
  const RecursiveProgrammingResult stages = recursive_programming(graph, {.devices = 32, .stages = 4});
  const RecursiveProgrammingResult one = recursive_programming(graph, {.devices = 8});
  EXPECT_EQ(stages.cuts.halvings, 3U);
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    EXPECT_LE(devices_used(stages.strategies.parts[i]), 8U) << graph.operators[i].name;
  }
  EXPECT_EQ(stages.cuts.graph.nodes[1].first.parts, one.cuts.graph.nodes[1].first.parts);
}

TEST(RecursiveProgramming, HalvesOddNumbersOfDevicesAsOftenAsItCan) {
  const models::Graph graph = resnet50();
  EXPECT_EQ(recursive_programming(graph, {.devices = 1}).cuts.halvings, 0U);
  const RecursiveProgrammingResult six = recursive_programming(graph, {.devices = 6});
  EXPECT_EQ(six.cuts.halvings, 2U);
  for (const DimensionParts& parts : six.strategies.parts) EXPECT_EQ(6 % devices_used(parts), 0U);
  EXPECT_EQ(recursive_programming(graph, {.devices = 1024}).cuts.halvings, 10U);
}

TEST(RecursiveProgramming, RefusesWhatItCannotHalve) {
  const models::Graph graph = models::make_model({.name = "lenet", .batch = 8});
  const auto refused = [&](const RecursiveOptions& options) {
    return test::refusal("search", [&] { (void)recursive_programming(graph, options); });
  };
  EXPECT_EQ(refused({.devices = 0}), "the recursive search takes 1 to 1024 devices, got 0");
  EXPECT_EQ(refused({.devices = 1025}), "the recursive search takes 1 to 1024 devices, got 1025");
  EXPECT_THAT(refused({.devices = 8, .stages = 3}), HasSubstr("got 3"));
  EXPECT_THAT(refused({.devices = 8, .stages = 16}), HasSubstr("got 16"));
}

TEST(RecursiveProgramming, WarnsOfMemory) {
  RecursiveGraph graph;
  graph.nodes.push_back(matmul_node(64, 1024, 1024));
  const double bytes = 4.0 * (64 * 1024 + 1024 * 512) / 2;  // j is cut
  EXPECT_TRUE(recursive_cuts(graph, 64, {.devices = 2, .device_memory = 2000000}).warnings.empty());
  const RecursiveCuts cuts = recursive_cuts(graph, 64, {.devices = 2, .device_memory = 1000});
  EXPECT_EQ(cuts.memory, bytes);
  EXPECT_THAT(cuts.warnings, ElementsAre(HasSubstr("more than the 1000 bytes of memory that the search counts with")));
}

TEST(RecursiveProgramming, LooksAtHalvingsTimesOperators) {
  const auto looked_at = [](std::uint32_t layers, Rank devices) {
    const models::Graph graph = models::make_model({.name = "bert-base", .batch = 1024, .layers = layers});
    return recursive_programming(graph, {.devices = devices}).cuts.candidates;
  };
  const std::uint64_t once = looked_at(4, 8);
  EXPECT_LE(looked_at(8, 8), 2 * once);
  EXPECT_LE(looked_at(4, 64), 2 * once);
}

}  // namespace
}  // namespace hcclsim::hccl
