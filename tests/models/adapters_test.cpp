// Adapters beside frozen weights: which parameters there are, which of them are trained, and what is launched.
#include "models/adapters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/models/graphs.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::models {
namespace {

using testing::HasSubstr;

ModelOptions small(std::uint32_t rank, std::optional<std::string> targets = {}) {
  ModelOptions options{.name = "llama",
                       .batch = 2,
                       .sequence = 8,
                       .layers = 2,
                       .hidden = 32,
                       .heads = 4,
                       .vocabulary = 16,
                       .kv_heads = 2,
                       .feed_forward = 48};
  if (rank > 0) options.lora_rank = rank;
  options.lora_targets = std::move(targets);
  return options;
}

// Megatron's check: rank x (4096 + 6144 of queries, keys and values, 4096 + 4096 behind them, 4096 + 2 x 11008, and
// 11008 + 4096) per layer.
TEST(Adapters, TrainRankTimesTheFeaturesOnBothSides) {
  const Graph graph = make_model({.name = "llama",
                                  .batch = 1,
                                  .layers = 1,
                                  .hidden = 4096,
                                  .heads = 32,
                                  .kv_heads = 8,
                                  .feed_forward = 11008,
                                  .lora_rank = 16});
  EXPECT_EQ(graph.trained_elements(), 954'368U);
}

TEST(Adapters, AllOtherParametersAreFrozen) {
  const Graph plain = make_model(small(0));
  const Graph tuned = make_model(small(4));
  EXPECT_EQ(tuned.parameter_elements() - tuned.trained_elements(), plain.parameter_elements());
  for (const Parameter& parameter : tuned.parameters) {
    EXPECT_EQ(parameter.frozen, parameter.name.find(".lora_") == std::string::npos) << parameter.name;
  }
  for (OperatorId id = 0; id < tuned.operators.size(); ++id) {
    for (const Value input : tuned.operators[id].inputs) EXPECT_LT(input.op, id);
  }
}

TEST(Adapters, ProductsThatReadOneRowShareTheFirstHalf) {
  const Graph graph = make_model(small(4, "q_proj,v_proj"));
  // One A of 32 x 4, a B of 4 x 32 and one of 4 x 16, in each of two layers.
  EXPECT_EQ(graph.trained_elements(), 2U * (32 * 4 + 4 * 32 + 4 * 16));
}

TEST(Adapters, FrozenWeightsHaveNeitherGradientsNorKernelsOfThem) {
  const Program step = lower(make_model(small(4)), {.precision = {.compute = DataType::bf16}});
  for (const Gradient& gradient : step.gradients) EXPECT_THAT(gradient.name, HasSubstr(".lora_"));
  const auto weight_gradients = std::ranges::count_if(
      step.kernels, [](const Kernel& kernel) { return kernel.name.find("weight_gradient") != std::string::npos; });
  EXPECT_EQ(static_cast<std::size_t>(weight_gradients), step.gradients.size());
  // Two bytes of each frozen weight; four, and two of a copy for products, of each one of an adapter.
  const Graph graph = make_model(small(4));
  const Bytes trained = graph.trained_elements();
  EXPECT_EQ(step.weights, 2 * (graph.parameter_elements() - trained) + 4 * trained);
  EXPECT_EQ(step.weight_casts, 2 * trained);
}

TEST(Adapters, ExpertsHaveTheirOwn) {
  ModelOptions options = small(2, "w1");
  options.name = "mixtral";
  options.experts = 4;
  options.chosen_experts = 2;
  EXPECT_EQ(make_model(options).trained_elements(), 2U * 4 * (32 * 2 + 2 * 48));
}

TEST(Adapters, RefuseTargetsThatAreNotThere) {
  const auto refused = [](const ModelOptions& options) {
    return test::refusal("model", [&] { static_cast<void>(make_model(options)); });
  };
  EXPECT_THAT(refused(small(4, "q_proj,query")), HasSubstr("no linear operator 'query'"));
  EXPECT_THAT(refused(small(4, "query")), HasSubstr("down_proj, gate_proj, k_proj"));
  EXPECT_THAT(refused(small(0, "q_proj")), HasSubstr("--lora-rank adds"));
  EXPECT_THAT(test::refusal("model",
                            [] { static_cast<void>(with_adapters(make_model({.name = "smallres", .batch = 1}), {})); }),
              HasSubstr("no linear operators in layers"));
}

}  // namespace
}  // namespace hcclsim::models
