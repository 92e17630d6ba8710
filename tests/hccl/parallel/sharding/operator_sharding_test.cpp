#include "hccl/parallel/sharding/operator_sharding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::GraphBuilder;
using models::OperatorId;
using testing::HasSubstr;

using Groups = std::vector<std::vector<Rank>>;

/// A linear operator of 16 rows, 8 features and 4 results, and its loss.
Graph product(bool bias = false) {
  GraphBuilder builder("product", {16, 8});
  const auto head = builder.linear("fc", GraphBuilder::input(), 4, bias);
  return std::move(builder).finish(head);
}

/// A layer of four heads of 8 features over 4 sequences of 8 tokens; operator 4 is the attention.
Graph attention(std::uint32_t kv_heads = 4) {
  GraphBuilder builder = GraphBuilder::of_tokens("attention", 4, 8);
  const OperatorId x = builder.token_embedding("table", GraphBuilder::input(), 64, 32);
  const OperatorId query = builder.linear("query", x, 32, false);
  const OperatorId key = builder.linear("key", x, 8 * kv_heads, false);
  const OperatorId value = builder.linear("value", x, 8 * kv_heads, false);
  const OperatorId core = builder.attention("core", query, key, value, {.heads = 4, .kv_heads = kv_heads});
  const auto head = builder.linear("head", core, 64, false);
  return std::move(builder).finish(head);
}

OperatorId find(const Graph& graph, std::string_view name) {
  return static_cast<OperatorId>(std::ranges::find(graph.operators, name, &models::Operator::name) -
                                 graph.operators.begin());
}

OperatorSharding shard(const Graph& graph, std::string_view name, const OperatorStrategy& strategy, Rank devices) {
  return shard_operator(WholeGraph(graph), find(graph, name), &strategy, devices);
}

void refused(const Graph& graph, std::string_view name, const OperatorStrategy& strategy, Rank devices,
             const std::string& message) {
  EXPECT_THAT(test::refusal("strategy", [&] { (void)shard(graph, name, strategy, devices); }), HasSubstr(message));
}

// MindSpore's example of 8 devices: the product (2,2),(2,1) is computed twice by each part.
TEST(OperatorSharding, MatrixGroupsAndCopiesOfAProduct) {
  const OperatorSharding sharding = shard(product(), "fc", {.inputs = {{2, 2}, {1, 2}}}, 8);
  EXPECT_EQ(sharding.matrix.sizes, (std::vector<std::uint32_t>{2, 2, 1, 2}));
  EXPECT_EQ(sharding.groups(sharding.partial), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(sharding.parameters.front().replicas(), (Groups{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(sharding.inputs.front().replicas(), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(sharding.outputs.front().slice_shape(), (models::Shape{8, 4}));
  EXPECT_EQ(sharding.parameters.front().slice_shape(), (models::Shape{4, 4}));
}

TEST(OperatorSharding, AnOutputInParts) {
  const OperatorSharding whole = shard(product(), "fc", {.inputs = {{2, 4}, {1, 4}}}, 8);
  EXPECT_FALSE(whole.scattered.has_value());
  EXPECT_EQ(whole.result().slice_shape(), (models::Shape{8, 4}));
  const OperatorSharding parts = shard(product(), "fc", {.inputs = {{2, 4}, {1, 4}}, .output = Cuts{8, 1}}, 8);
  EXPECT_EQ(parts.scattered, 0U);
  EXPECT_EQ(parts.result().slice_shape(), (models::Shape{2, 4}));
  EXPECT_EQ(parts.result().offsets(5), (std::vector<std::uint32_t>{10, 0}));
}

TEST(OperatorSharding, WithoutAStrategyTheBatchIsCut) {
  const Graph graph = product();
  const OperatorSharding sharding = shard_operator(WholeGraph(graph), 1, nullptr, 32);
  EXPECT_EQ(sharding.matrix.sizes, (std::vector<std::uint32_t>{16, 1, 1, 2}));
  EXPECT_EQ(sharding.parameters.front().replicas().front().size(), 32U);
}

// Whole sequences first, then positions of each.
TEST(OperatorSharding, RowsOfSequences) {
  const Graph graph = attention();
  const OperatorSharding two = shard(graph, "query", {.inputs = {{2, 1}, {2, 1}}}, 4);
  EXPECT_EQ(two.inputs.front().slice_shape(), (models::Shape{2, 8, 32}));
  const OperatorSharding eight = shard(graph, "query", {.inputs = {{8, 1}, {1, 1}}}, 8);
  EXPECT_EQ(eight.inputs.front().slice_shape(), (models::Shape{1, 4, 32}));
  const OperatorSharding three_axes = shard(graph, "query", {.inputs = {{1, 4, 1}, {1, 1}}}, 4);
  EXPECT_EQ(three_axes.inputs.front().slice_shape(), (models::Shape{4, 2, 32}));
  refused(graph, "query", {.inputs = {{3, 1}, {1, 1}}}, 9, "the rows of 4 sequences of 8 cannot be cut into 3 parts");
}

TEST(OperatorSharding, SeveralAxesOfTheDevices) {
  const Graph graph = attention();
  OperatorStrategy strategy;
  const TensorMap heads{{2}, {}, {0, 1}};  // devices 2 x 2 x 2; the last axis varies slowest among the heads
  strategy.layout = LayoutStrategy{{{2, 2, 2}}, {heads, heads, heads}};
  const OperatorSharding sharding = shard(graph, "core", strategy, 8);
  EXPECT_EQ(sharding.inputs.front().slice_shape(), (models::Shape{2, 8, 8}));
  EXPECT_EQ(sharding.inputs.front().offsets(1), (std::vector<std::uint32_t>{0, 0, 16}));
  EXPECT_EQ(sharding.inputs.front().offsets(2), (std::vector<std::uint32_t>{0, 0, 8}));
  strategy.layout->matrix.sizes = {2, 2};
  refused(graph, "core", strategy, 8, "the device matrix (2,2) is of 4 devices, there are 8");
  strategy.layout->matrix.sizes = {2, 2, 2};
  strategy.layout->inputs.assign(3, {{0}, {}, {0}});
  refused(graph, "core", strategy, 8, "axis 0 of the devices cuts two dimensions");
  strategy.layout->inputs.assign(3, {{3}, {}, {0}});
  refused(graph, "core", strategy, 8, "there is no axis 3 of the devices; there are 3");
}

TEST(OperatorSharding, TablesOfTokens) {
  const Graph graph = attention();
  const OperatorSharding rows = shard(graph, "table", {.inputs = {{4, 1}, {1, 1}}}, 4);
  EXPECT_EQ(rows.scattered, 0U);  // 4 sequences can be shared by 4 devices
  EXPECT_EQ(rows.result().slice_shape(), (models::Shape{1, 8, 32}));
  const OperatorSharding many = shard(graph, "table", {.inputs = {{8, 1}, {1, 1}}}, 8);
  EXPECT_FALSE(many.scattered.has_value());  // by 8 they cannot
  const OperatorSharding columns = shard(graph, "table", {.inputs = {{1, 4}, {1, 1}}}, 4);
  EXPECT_TRUE(columns.partial.empty());
  EXPECT_EQ(columns.result().slice_shape(), (models::Shape{4, 8, 8}));
  const OperatorSharding both = shard(graph, "table", {.inputs = {{2, 1}, {4, 1}}}, 8);
  EXPECT_EQ(both.groups(both.partial), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_FALSE(both.scattered.has_value());
  refused(graph, "table", {.inputs = {{2, 1}, {2, 1}}}, 8,
          "table: tokens in 2 parts and the table in 2 parts for 8 devices");
}

TEST(OperatorSharding, RefusedStrategies) {
  const Graph graph = product(true);
  refused(graph, "fc", {.inputs = {{2, 1}}}, 8,
          "fc: a strategy has numbers of parts for each tensor, got them for 1 of 3: input input, parameter fc.weight");
  refused(graph, "fc", {.inputs = {{2}, {1, 1}}}, 8, "fc: input input: numbers of parts for 1 axis, it has 2");
  refused(graph, "fc", {.inputs = {{2, 0}, {1, 1}}}, 8, "a cut into 0 parts");
  refused(graph, "fc", {.inputs = {{3, 1}, {1, 1}}}, 8,
          "a cut into 3 parts; over 8 devices each must be a power of two");
  refused(graph, "fc", {.inputs = {{3, 1}, {1, 1}}}, 6, "batch of 16 cannot be cut into 3 equal parts");
  refused(graph, "fc", {.inputs = {{1, 1}, {8, 1}}}, 8, "parameter fc.weight: outputs of 4 cannot be cut into 8");
  refused(graph, "fc", {.inputs = {{1, 2}, {1, 4}}}, 8, "is cut into 4 parts along inputs, another tensor into 2");
  refused(graph, "fc", {.inputs = {{1, 1}, {2, 1}, {4}}}, 8,
          "is cut into 4 parts along outputs, another tensor into 2");
  refused(graph, "fc", {.inputs = {{4, 4}, {1, 4}}}, 8, "16 parts (batch 4, inputs 4) for 8 devices");
  refused(graph, "fc", {.inputs = {{2, 1}, {1, 1}}, .output = Cuts{4, 1}}, 8, "the output cannot be cut (4,1)");
  refused(graph, "fc", {.inputs = {{2, 2}, {1, 2}}, .output = Cuts{2, 2, 2}}, 8,
          "output: numbers of parts for 3 axes, it has 2");
  refused(graph, "loss", {.inputs = {{2, 1}, {4}}}, 8, "with the cuts of the others it must be (2)");
  const Graph heads = attention(2);
  refused(heads, "core", {.inputs = {{1, 4}, {1, 4}, {1, 4}}}, 8, "2 heads cannot be shared by 4 devices");
  const Graph gpt = models::make_model({.name = "tinygpt", .batch = 4});
  refused(gpt, "ln_1", {.inputs = {{1, 2}, {2}, {2}}}, 8, "the features of a row are normalised together");
  refused(gpt, "add_1", {.inputs = {{1, 2}, {1, 2}}, .output = Cuts{1, 2}}, 8, "do not take a strategy of the output");
  refused(gpt, "add_1", {.inputs = {{1, 2}, {2, 1}}}, 8, "add_1: input");
}

TEST(Strategy, NamesThatFitAPattern) {
  const Graph graph = attention();
  const StrategyMap found = match_strategies(graph, {{"*e*", {.inputs = {{2, 1}}}}, {"key", {.inputs = {{4, 1}}}}});
  EXPECT_EQ(to_string(found.at("query")), "(2,1)");
  EXPECT_EQ(to_string(found.at("key")), "(4,1)");
  EXPECT_EQ(found.count("loss"), 0U);
  EXPECT_THAT(test::refusal("strategy",
                            [&] {
                              (void)match_strategies(graph, {{"h.*", {}}});
                            }),
              HasSubstr("'h.*': attention has no operator with such a name"));
}

}  // namespace
}  // namespace hcclsim::hccl
