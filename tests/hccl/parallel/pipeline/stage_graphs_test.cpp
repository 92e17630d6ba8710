#include "hccl/parallel/pipeline/stage_graphs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "models/zoo/zoo.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::Operator;
using models::OperatorKind;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Graph> cut(const Graph& graph, std::uint32_t stages, std::uint32_t chunks = 1, Rank ranks = 1) {
  return stage_graphs(graph, even_parts(graph.layers, stages, chunks), stages, ranks);
}

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Operator& op : graph.operators) names.push_back(op.name);
  return names;
}

TEST(StageGraphs, APerceptronInTwo) {
  const std::vector<Graph> stages = cut(models::make_model({.name = "mlp:8,6,4", .batch = 2}), 2, 1, 3);
  EXPECT_THAT(names_of(stages[0]), ElementsAre("input", "fc1", "relu1", "relu1.to_stage_1"));
  EXPECT_THAT(names_of(stages[1]), ElementsAre("relu1.from_stage_0", "fc2", "loss"));
  EXPECT_EQ(stages[0].operators.back().peer.offset, 3);
  EXPECT_EQ(stages[1].operators.front().peer.offset, -3);
  EXPECT_EQ(stages[1].operators.front().peer.tag, stages[0].operators.back().peer.tag);
  EXPECT_EQ(stages[0].parameters.size(), 2U);
  EXPECT_EQ(stages[1].parameters[0].name, "fc2.weight");
  EXPECT_EQ(stages[1].operators[1].parameters, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(stages[1].batch(), 2U);
}

TEST(StageGraphs, ChunksOfAStageAreNotNeighbours) {
  const std::vector<Graph> stages = cut(models::make_model({.name = "mlp:4,4,4,4,4", .batch = 2}), 2, 2);
  EXPECT_THAT(names_of(stages[0]), ElementsAre("input", "fc1", "relu1", "relu1.to_stage_1", "relu2.from_stage_1", "fc3",
                                               "relu3", "relu3.to_stage_1"));
  std::vector<std::uint32_t> chunks;
  for (const Operator& op : stages[0].operators) chunks.push_back(op.chunk);
  EXPECT_THAT(chunks, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
}

// The table of tokens is used at both ends: its owner sends it first of all, and gets its gradient back.
TEST(StageGraphs, TiedTables) {
  const Graph graph = models::make_model({.name = "gpt2-small", .batch = 1, .sequence = 16, .layers = 4});
  const std::vector<Graph> stages = cut(graph, 4);
  const Operator& gives = stages[0].operators.front();
  EXPECT_EQ(gives.kind, OperatorKind::send);
  EXPECT_EQ(gives.peer.offset, 3);
  EXPECT_EQ(stages[0].parameters[gives.parameters.front()].name, "wte.weight");
  const Operator& takes = stages[3].operators.front();
  EXPECT_EQ(takes.kind, OperatorKind::receive);
  EXPECT_TRUE(takes.outputs.empty());
  EXPECT_EQ(stages[3].parameters[takes.parameters.front()].name, "wte.weight");
  for (const std::size_t stage : {1U, 2U}) {
    EXPECT_EQ(std::ranges::find(stages[stage].parameters, "wte.weight", &models::Parameter::name),
              stages[stage].parameters.end());
  }
  std::uint64_t elements = 0;
  for (const Graph& stage : stages) elements += stage.parameter_elements();
  EXPECT_EQ(elements, graph.parameter_elements() + graph.parameters[0].elements);
}

// PanGu's last layer looks up positions of the batch, which its stage reads itself.
TEST(StageGraphs, TheBatchIsReadWhereItIsNeeded) {
  const std::vector<Graph> stages =
      cut(models::make_model({.name = "pangu-2.6b", .batch = 1, .sequence = 16, .layers = 4}), 2);
  EXPECT_EQ(std::ranges::count(stages[1].operators, OperatorKind::input, &Operator::kind), 1);
  EXPECT_EQ(std::ranges::count(stages[0].operators, OperatorKind::send, &Operator::kind), 2);  // the table, a tensor
}

TEST(StageGraphs, ResidualNetworksAreCutBetweenBlocks) {
  const std::vector<Graph> stages = cut(models::make_model({.name = "resnet50", .batch = 1}), 4);
  for (std::size_t stage = 0; stage < 3; ++stage) {
    EXPECT_EQ(std::ranges::count(stages[stage].operators, OperatorKind::send, &Operator::kind), 1) << stage;
  }
  std::uint64_t elements = 0;
  for (const Graph& stage : stages) elements += stage.parameter_elements();
  EXPECT_EQ(elements, 25'557'032U);
}

TEST(StageGraphs, LayersThatCannotBeShared) {
  EXPECT_THAT(test::refusal("pipeline", [] { static_cast<void>(even_parts(12, 5, 1)); }),
              HasSubstr("1, 2, 3, 4, 6, 12"));
  const Graph graph = models::make_model({.name = "mlp:4,4,4,4", .batch = 2});
  EXPECT_THAT(test::refusal("pipeline",
                            [&] {
                              static_cast<void>(stage_graphs(graph, std::vector{1U, 1U}, 2, 1));
                            }),
              HasSubstr("together 2 must be 3"));
  EXPECT_THAT(test::refusal("pipeline",
                            [&] {
                              static_cast<void>(stage_graphs(graph, std::vector{3U, 0U}, 2, 1));
                            }),
              HasSubstr("stage 1 of MLP 4-4-4-4 has no operator"));
}

// The last part has the norm, the logits and the loss alone.
TEST(StageGraphs, PartsMayHaveNoLayer) {
  const Graph graph = models::make_model({.name = "llama",
                                          .batch = 1,
                                          .sequence = 4,
                                          .layers = 2,
                                          .hidden = 8,
                                          .heads = 2,
                                          .vocabulary = 16,
                                          .feed_forward = 8});
  const std::vector<Graph> stages = stage_graphs(graph, std::vector{2U, 0U}, 2, 1);
  EXPECT_EQ(stages[1].operators.front().kind, models::OperatorKind::receive);
  EXPECT_EQ(stages[1].operators.back().kind, models::OperatorKind::loss);
  EXPECT_EQ(stages[1].parameters.size(), 2U);
  // A part between others hands nothing on: its neighbours talk to each other.
  const std::vector<Graph> parts = stage_graphs(graph, std::vector{1U, 0U, 1U, 0U}, 2, 1);
  EXPECT_EQ(std::ranges::count(parts[1].operators, models::OperatorKind::receive, &models::Operator::kind), 1);
}

/// The time of the slowest part of all ways to cut; a cut before layer n takes cuts[n] of both parts.
double best_by_trying(const std::vector<double>& times, std::size_t begin, std::uint32_t parts,
                      const std::vector<double>& cuts) {
  const double before = begin == 0 ? 0 : cuts[begin];
  if (parts == 1) {
    return before + std::accumulate(times.begin() + static_cast<std::ptrdiff_t>(begin), times.end(), 0.0);
  }
  double best = 1e30;
  double sum = before;
  for (std::size_t end = begin + 1; end + parts - 1 <= times.size(); ++end) {
    sum += times[end - 1];
    best = std::min(best, std::max(sum + cuts[end], best_by_trying(times, end, parts - 1, cuts)));
  }
  return best;
}

TEST(StageGraphs, BalancedPartsCountTheirCuts) {
  std::uint32_t state = 11;
  const auto random = [&state] { return 1 + (state = state * 1664525U + 1013904223U) % 17; };
  for (std::size_t layers = 3; layers <= 9; ++layers) {
    std::vector<double> times;
    std::vector<double> cuts;
    for (std::size_t i = 0; i < layers; ++i) times.push_back(random());
    for (std::size_t i = 0; i < layers; ++i) cuts.push_back(random());
    for (std::uint32_t parts = 1; parts <= layers; ++parts) {
      const auto cut = [&](std::uint32_t /*part*/, std::size_t layer) { return cuts[layer]; };
      double slowest = 0;
      std::size_t layer = 0;
      for (const std::uint32_t count : balanced_parts(times, parts, cut)) {
        double sum = layer == 0 ? 0 : cuts[layer];
        for (std::uint32_t i = 0; i < count; ++i) sum += times[layer++];
        slowest = std::max(slowest, layer == layers ? sum : sum + cuts[layer]);
      }
      EXPECT_EQ(layer, layers);
      EXPECT_DOUBLE_EQ(slowest, best_by_trying(times, 0, parts, cuts));
    }
  }
}

TEST(StageGraphs, BalancedPartsAreTheBest) {
  std::uint32_t state = 7;
  for (std::size_t layers = 3; layers <= 9; ++layers) {
    std::vector<double> times;
    for (std::size_t i = 0; i < layers; ++i) times.push_back(1 + (state = state * 1664525U + 1013904223U) % 17);
    for (std::uint32_t parts = 1; parts <= layers; ++parts) {
      const std::vector<std::uint32_t> counts = balanced_parts(times, parts);
      ASSERT_EQ(counts.size(), parts);
      double slowest = 0;
      std::size_t layer = 0;
      for (const std::uint32_t count : counts) {
        EXPECT_GT(count, 0U);
        double sum = 0;
        for (std::uint32_t i = 0; i < count; ++i) sum += times[layer++];
        slowest = std::max(slowest, sum);
      }
      EXPECT_EQ(layer, layers);
      EXPECT_DOUBLE_EQ(slowest, best_by_trying(times, 0, parts, std::vector<double>(layers, 0)));
    }
  }
  EXPECT_THAT(test::refusal("pipeline", [] { static_cast<void>(balanced_parts(std::vector{1.0}, 2)); }),
              HasSubstr("too few"));
}

}  // namespace
}  // namespace hcclsim::hccl
