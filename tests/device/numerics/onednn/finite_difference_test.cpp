#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/counter_random.hpp"
#include "models/graph_builder.hpp"
#include "tests/device/numerics/sample_net.hpp"

/// Gradients against differences of the loss of forward passes, with the same dropout masks in all of them.
namespace hcclsim::device {
namespace {

models::Graph sequences(float drop_rate) {
  models::GraphBuilder builder = models::GraphBuilder::of_tokens("sequences", 2, 7);
  models::OperatorId x = builder.token_embedding("wte", models::GraphBuilder::input(), 11, 12);
  x = builder.dropout("drop_1", builder.position_embedding("wpe", x), drop_rate);
  models::OperatorId branch = builder.linear("qkv", builder.layer_norm("ln", x), 36, true);
  branch = builder.dropout("drop_2", builder.attention("attention", branch, {.heads = 3, .causal = true}), drop_rate);
  x = builder.add("sum", branch, x);
  branch = builder.linear("head", builder.gelu("gelu", x), 11, true);
  return std::move(builder).finish(branch);
}

void expect_slopes(const models::Graph& graph) {
  SampleNet net(graph);
  Workspace workspace(net.computation);
  WorkerPool pool(1);
  std::vector<float> gradients = net.flat();
  const models::Batch batch = batch_of(graph, test::oracle_batch(graph, 1, 0));
  const StepInput input{.dropout_seed = 11};
  const double loss = workspace.step(net.weights, batch, input, gradients).loss;
  EXPECT_EQ(workspace.forward(net.weights, batch, input).loss, loss);
  const auto loss_at = [&](std::size_t i, float value) {
    net.weights.values()[i] = value;
    net.weights.prepare(pool);
    return workspace.forward(net.weights, batch, input).loss;
  };
  for (const ParameterSlot& slot : net.computation.parameters()) {
    const auto tensor = std::span(gradients).subspan(slot.offset, slot.elements);
    const double norm = std::sqrt(std::inner_product(tensor.begin(), tensor.end(), tensor.begin(), 0.0));
    for (std::uint64_t k = 0; k < 4; ++k) {
      const std::size_t i = slot.offset + counter_bits(3, slot.parameter, k) % slot.elements;
      const float weight = net.weights.values()[i];
      constexpr float step = 0x1p-7F;
      const double slope = (loss_at(i, weight + step) - loss_at(i, weight - step)) / (2 * step);
      loss_at(i, weight);
      EXPECT_NEAR(gradients[i], slope, 2e-3 * norm + 1e-4) << slot.name << " " << i - slot.offset;
    }
  }
}

TEST(FiniteDifferences, WithoutDropout) { expect_slopes(sequences(0)); }

TEST(FiniteDifferences, WithDropout) { expect_slopes(sequences(0.4F)); }

TEST(FiniteDifferences, OtherSeedsGiveOtherLosses) {
  const models::Graph graph = sequences(0.4F);
  const SampleNet net(graph);
  Workspace workspace(net.computation);
  const models::Batch batch = batch_of(graph, test::oracle_batch(graph, 1, 0));
  const double loss = workspace.forward(net.weights, batch, {.dropout_seed = 1}).loss;
  EXPECT_EQ(workspace.forward(net.weights, batch, {.dropout_seed = 1}).loss, loss);
  EXPECT_NE(workspace.forward(net.weights, batch, {.dropout_seed = 2}).loss, loss);
}

}  // namespace
}  // namespace hcclsim::device
