#include "models/lowering/backward_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::models {
namespace {

using testing::ElementsAre;

std::vector<std::string> ordered_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const OperatorId id : backward_order(graph)) {
    if (!graph.operators[id].parameters.empty()) names.push_back(graph.operators[id].name);
  }
  return names;
}

/// conv and bn, then a block with convolutions "main" and "short" of `stride` on its two branches.
Graph block(std::uint32_t stride) {
  GraphBuilder builder("test", {1, 3, 8, 8});
  const OperatorId x = builder.convolution("stem", GraphBuilder::input(), {.channels = 8, .window = {}});
  OperatorId main = builder.convolution("main1", x, {.channels = 8, .window = {.kernel = 1, .stride = stride}});
  main = builder.convolution("main2", builder.batch_norm("bn1", main), {.channels = 8, .window = {}});
  main = builder.batch_norm("bn2", main);
  const OperatorId side = builder.convolution("short", x, {.channels = 8, .window = {.kernel = 1, .stride = stride}});
  const OperatorId sum = builder.add("add", main, builder.batch_norm("bn3", side));
  const OperatorId logits = builder.linear("fc", builder.flatten("flatten", sum), 2, true);
  return std::move(builder).finish(logits);
}

TEST(BackwardOrder, UnstridedShortcutFollowsTheConvolutionItIsAddedTo) {
  EXPECT_THAT(ordered_names(block(1)), ElementsAre("fc", "bn3", "bn2", "main2", "short", "bn1", "main1", "stem"));
}

TEST(BackwardOrder, StridedShortcutWaitsForTheFirstConvolutionOfTheBlock) {
  EXPECT_THAT(ordered_names(block(2)), ElementsAre("fc", "bn3", "bn2", "main2", "bn1", "main1", "short", "stem"));
}

TEST(BackwardOrder, EveryOperatorComesAfterItsConsumers) {
  for (const ModelInfo& info : model_list()) {
    SCOPED_TRACE(info.name);
    const Graph graph = make_model({.name = std::string(info.name)});
    const std::vector<OperatorId> order = backward_order(graph);
    ASSERT_EQ(order.size(), graph.operators.size() - 1);
    std::vector<std::size_t> position(graph.operators.size(), order.size());
    for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    for (OperatorId id = 1; id < graph.operators.size(); ++id) {
      ASSERT_LT(position[id], order.size()) << "missing " << graph.operators[id].name;
      for (const Value input : graph.operators[id].inputs) EXPECT_LT(position[id], position[input.op]);
    }
  }
}

}  // namespace
}  // namespace hcclsim::models
