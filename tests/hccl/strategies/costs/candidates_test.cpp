#include "hccl/strategies/costs/candidates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "hccl/strategies/costs/cost_graph.hpp"
#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using models::GraphBuilder;
using testing::ElementsAre;
using testing::HasSubstr;

/// 16 rows of 32 features → 64 → 8, without a bias between.
models::Graph two_products() {
  GraphBuilder builder("two products", {16, 32});
  const models::OperatorId first = builder.linear("first", GraphBuilder::input(), 64, true);
  const auto head = builder.linear("second", first, 8, false);
  return std::move(builder).finish(head);
}

SearchOptions on(Rank devices) {
  SearchOptions options;
  options.devices = devices;
  return options;
}

TEST(Candidates, UseAllDevicesOrOne) {
  const std::vector<SearchedOperator> operators = searched_operators(two_products());
  SearchOptions options = on(4);
  EXPECT_THAT(
      candidates_of(operators[1], options),
      ElementsAre(DimensionParts{1, 1, 1}, DimensionParts{1, 1, 4}, DimensionParts{1, 2, 2}, DimensionParts{1, 4, 1},
                  DimensionParts{2, 1, 2}, DimensionParts{2, 2, 1}, DimensionParts{4, 1, 1}));
  options.fully_use_devices = false;
  EXPECT_EQ(candidates_of(operators[1], options).size(), 10U);  // 2^a · 2^b · 2^c ≤ 4
}

TEST(Candidates, DivideAxesAndDevices) {
  const std::vector<SearchedOperator> operators = searched_operators(two_products());
  SearchOptions options = on(6);
  options.fully_use_devices = false;
  for (const DimensionParts& parts : candidates_of(operators[1], options)) {
    EXPECT_EQ(6 % devices_used(parts), 0U);
    EXPECT_LE(devices_used(parts), 2U);  // three divides no axis
  }
  options = on(4);
  options.tensor_slice_align_enable = true;
  // Slices of 16×32 and 64×32 in multiples of 16: rows stay whole, and inner features in two parts at most.
  EXPECT_THAT(candidates_of(operators[1], options),
              ElementsAre(DimensionParts{1, 1, 1}, DimensionParts{1, 1, 4}, DimensionParts{1, 2, 2}));
}

TEST(Candidates, KeepRowsOfSequencesAsOneAxis) {
  const models::Graph graph = models::make_model({.name = "tinygpt", .batch = 2});
  const std::vector<SearchedOperator> operators = searched_operators(graph);
  for (const SearchedOperator& op : operators) {
    const std::optional<std::size_t> positions = op.find("positions");
    for (const DimensionParts& parts : candidates_of(op, on(8))) {
      const bool cut = positions.has_value() && parts[*positions] > 1;
      EXPECT_TRUE(!cut || parts[*op.find("batch")] == op.sizes[0]);
    }
    EXPECT_TRUE(op.kind != models::OperatorKind::attention || op.sizes[*positions] == 1);
  }
}

TEST(Candidates, CutAVocabularyAloneOrWithAllOtherDevicesOnSequences) {
  const models::Graph graph = models::make_model({.name = "tinygpt", .batch = 4});
  SearchOptions options = on(8);
  options.fully_use_devices = false;
  const std::vector<SearchedOperator> operators = searched_operators(graph);
  const SearchedOperator& table = operators[1];
  ASSERT_EQ(table.kind, models::OperatorKind::token_embedding);
  for (const DimensionParts& parts : candidates_of(table, options)) {
    const std::size_t vocabulary = *table.find("vocabulary");
    if (parts[vocabulary] == 1) continue;
    EXPECT_EQ(parts[*table.find("features")], 1U);
    EXPECT_TRUE(parts[0] == 1 || parts[0] * parts[vocabulary] == 8);
  }
}

TEST(OperatorCost, OfAMatMulIsCountedInBytes) {
  const models::Graph graph = two_products();
  const SearchedOperator second = searched_operators(graph)[2];  // 16×64 · 64×8
  const SearchOptions options = on(4);
  // Rows over two devices, inner features over two: 8×32 and 8×32 and the result of 8×8 are computed on; the result is
  // sent, 256 bytes that cost as much as 3072; the weight of 1 KB, on half of the devices each, must be summed.
  SearchCost cost = operator_cost(second, {2, 2, 1}, true, options);
  EXPECT_EQ(cost.computation, 4 * (8 * 32 + 8 * 32 + 8 * 8));
  EXPECT_EQ(cost.forward, 3072);
  EXPECT_EQ(cost.communication, 3072 + 1024);
  EXPECT_EQ(cost.partial_communication, 3072 + 0.001 * 1024);
  EXPECT_EQ(cost.memory, 4 * (8 * 32 + 8 * 32));
  EXPECT_EQ(objective(cost, options), cost.computation + 400 * cost.partial_communication);

  // All devices on the weight: no gradient is summed.
  cost = operator_cost(second, {1, 1, 4}, true, options);
  EXPECT_EQ(cost.computation, 4 * (16 * 64 + 64 * 2));
  EXPECT_EQ(cost.communication, 0);

  // Data parallel: each part one byte less.
  cost = operator_cost(second, {4, 1, 1}, true, options);
  EXPECT_EQ(cost.computation, 4 * (4 * 64 + 64 * 8) - 1);
  EXPECT_EQ(cost.forward, 0);
  EXPECT_EQ(cost.communication, 4 * 64 * 8 - 1);
  EXPECT_EQ(cost.memory, 4 * (4 * 64 + 64 * 8) - 1);
  EXPECT_EQ(operator_cost(second, {4, 1, 1}, false, options).memory, 0);
}

TEST(OperatorCost, OfLargeMessagesHasABias) {
  const SearchOptions options;
  EXPECT_EQ(practical_bytes(0, options), 0);
  EXPECT_EQ(practical_bytes(1, options), 3072);
  EXPECT_EQ(practical_bytes(2048, options), 3072);
  EXPECT_EQ(practical_bytes(2049, options), 3073);
}

TEST(OperatorCost, OfBatchNormSendsItsInputWhereChannelsAreCut) {
  GraphBuilder builder("norm", {8, 4, 2, 2});
  const models::OperatorId norm = builder.batch_norm("bn", GraphBuilder::input());
  const auto head = builder.linear("fc", builder.flatten("flatten", norm), 2, false);
  const models::Graph graph = std::move(builder).finish(head);
  const SearchedOperator op = searched_operators(graph)[1];
  const SearchOptions options = on(2);
  DimensionParts parts(op.sizes.size(), 1);
  parts[*op.find("channels")] = 2;
  EXPECT_EQ(operator_cost(op, parts, true, options).forward, 3072);  // 256 bytes
  EXPECT_EQ(operator_cost(op, parts, true, options).communication, 3072);
  EXPECT_EQ(op.sizes[*op.find("height")], 1U);
}

TEST(CostGraphs, HaveTheRedistributionOnTheirEdges) {
  const models::Graph graph = two_products();
  const CostGraph costs = make_cost_graph(graph, on(4));
  ASSERT_EQ(costs.nodes.size(), 4U);
  ASSERT_EQ(costs.edges.size(), 3U);
  EXPECT_THAT(costs.nodes[0].candidates, ElementsAre(DimensionParts{4, 1}));
  const CostEdge& edge = costs.edges[1];
  const auto between = [&](const DimensionParts& from, const DimensionParts& to) {
    const auto& a = costs.nodes[1].candidates;
    const auto& b = costs.nodes[2].candidates;
    return *costs.cost(edge, static_cast<std::size_t>(std::ranges::find(a, from) - a.begin()),
                       static_cast<std::size_t>(std::ranges::find(b, to) - b.begin()));
  };
  // Output features of one are inner features of the other.
  EXPECT_EQ(between({1, 1, 4}, {1, 4, 1}), SearchCost{});
  EXPECT_EQ(between({4, 1, 1}, {4, 1, 1}), SearchCost{});
  // Rows are put together: 4 × 64 elements on each of four devices.
  const SearchCost gathered = between({4, 1, 1}, {1, 1, 4});
  EXPECT_EQ(gathered.forward, 4.0 * 256 * 4 / 2 + 1024);
  EXPECT_EQ(gathered.communication, 4.0 * 256 * 4 / 2 + 1024 + 3072);
  EXPECT_EQ(gathered.partial_communication, gathered.communication);
  EXPECT_EQ(gathered.computation, 4.0 * 2 * 256);
  EXPECT_EQ(gathered.memory, gathered.computation);
  // Slices cost no communication.
  const SearchCost sliced = between({1, 1, 1}, {4, 1, 1});
  EXPECT_EQ(sliced.communication, 0);
  EXPECT_GT(sliced.computation, 0);
}

TEST(CostGraphs, HaveSharedParametersAsNodes) {
  models::ModelOptions options{.name = "gpt2-small", .batch = 8};
  options.layers = 1;
  const models::Graph graph = models::make_model(options);
  const CostGraph costs = make_cost_graph(graph, on(2));
  ASSERT_EQ(costs.nodes.size(), graph.operators.size() + 1);
  EXPECT_EQ(costs.nodes.back().name, "wte.weight");
  std::size_t users = 0;
  for (const CostEdge& edge : costs.edges) users += edge.parameter ? 1 : 0;
  EXPECT_EQ(users, 2U);
}

TEST(CostGraphs, LetElementwiseOperatorsFollow) {
  GraphBuilder builder("follow", {16, 32});
  const models::OperatorId first = builder.linear("first", GraphBuilder::input(), 64, false);
  const auto head = builder.linear("second", builder.relu("relu", first), 8, false);
  const models::Graph graph = std::move(builder).finish(head);
  SearchOptions options = on(4);
  const auto pairs = [&] {
    const CostGraph costs = make_cost_graph(graph, options);
    return std::ranges::count_if(costs.edges[1].costs, [](const auto& cost) { return cost.has_value(); });
  };
  const std::ptrdiff_t all = pairs();
  options.elementwise_op_strategy_follow = true;
  EXPECT_LT(pairs(), all);
  EXPECT_GT(pairs(), 0);
}

TEST(SearchOptionsTest, AreChecked) {
  const auto refused = [](auto change) {
    SearchOptions options;
    change(options);
    return test::refusal("search", [&] { check(options); });
  };
  EXPECT_EQ(refused([](SearchOptions& o) { o.devices = 0; }), "strategies are searched for 1 to 1024 devices, got 0");
  EXPECT_THAT(refused([](SearchOptions& o) { o.devices = 2000; }), HasSubstr("got 2000"));
  EXPECT_THAT(refused([](SearchOptions& o) { o.tensor_slice_align_size = 0; }), HasSubstr("tensor_slice_align_size"));
  EXPECT_THAT(refused([](SearchOptions& o) { o.algo_approxi_epsilon = 0; }), HasSubstr("algo_approxi_epsilon"));
  EXPECT_THAT(refused([](SearchOptions& o) { o.algo_approxi_epsilon = 1.5; }), HasSubstr("algo_approxi_epsilon"));
  EXPECT_THAT(refused([](SearchOptions& o) { o.device_memory = 0; }), HasSubstr("device_memory"));
  EXPECT_THAT(refused([](SearchOptions& o) { o.alpha = 0; }), HasSubstr("costmodel_alpha"));
  EXPECT_THAT(refused([](SearchOptions& o) { o.beta = -1; }), HasSubstr("costmodel_beta"));
  EXPECT_THAT(refused([](SearchOptions& o) { o.gamma = 2; }), HasSubstr("costmodel_gamma"));
  EXPECT_THAT(refused([](SearchOptions& o) { o.communication_threshold = 0; }), HasSubstr("communi_threshold"));
  EXPECT_THAT(refused([](SearchOptions& o) { o.communication_constant = 0; }), HasSubstr("communi_const"));
  EXPECT_THAT(refused([](SearchOptions& o) { o.communication_bias = 0; }), HasSubstr("communi_bias"));
  EXPECT_THAT(refused([](SearchOptions& o) { o.rp_matmul_mem_coef = std::numeric_limits<double>::quiet_NaN(); }),
              HasSubstr("rp_matmul_mem_coef"));
}

TEST(SearchedOperators, RefuseGraphsThatAreCutAlready) {
  GraphBuilder builder("cut", {16, 32});
  const models::OperatorId sum = builder.all_reduce("sum", GraphBuilder::input(), {.family = 0, .ranks = 2});
  const auto head = builder.linear("fc", sum, 2, false);
  const models::Graph graph = std::move(builder).finish(head);
  EXPECT_THAT(test::refusal("unsupported", [&] { (void)searched_operators(graph); }), HasSubstr("sum"));
}

}  // namespace
}  // namespace hcclsim::hccl
