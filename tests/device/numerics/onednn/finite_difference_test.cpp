#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/counter_random.hpp"
#include "models/data/dataset.hpp"
#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"
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

/// A layer as LLaMA has it, with two heads of keys and values for four of queries, and all that BERT, PanGu and vision
/// transformers have besides: tied tables, positions by themselves, segments, dropped probabilities.
models::Graph transformer(float drop_rate) {
  models::GraphBuilder builder = models::GraphBuilder::of_tokens("transformer", 2, 6);
  const models::OperatorId table = builder.token_embedding("wte", models::GraphBuilder::input(), 11, 16);
  models::OperatorId x = builder.segment_embedding("wse", builder.position_embedding("wpe", table, 9), 2);
  const models::OperatorId normed = builder.rms_norm("norm_1", x);
  models::OperatorId query =
      builder.linear("q", builder.add("q_add", normed, builder.position_rows("rows", 7, 16)), 16, false);
  query = builder.rotary("q_rotary", query, 4);
  const models::OperatorId key = builder.rotary("k_rotary", builder.linear("k", normed, 8, false), 2);
  const models::OperatorId value = builder.linear("v", normed, 8, false);
  const models::OperatorId context = builder.attention(
      "attention", query, key, value, {.heads = 4, .kv_heads = 2, .causal = true, .drop_rate = drop_rate});
  x = builder.add("sum_1", builder.linear("o", context, 16, false), x);
  const models::OperatorId second = builder.rms_norm("norm_2", x);
  const models::OperatorId wide =
      builder.swiglu("swiglu", builder.linear("gate", second, 24, false), builder.linear("up", second, 24, false));
  x = builder.add("sum_2", builder.linear("down", wide, 16, false), x);
  x = builder.tied_linear("head", builder.tanh("tanh", x), table, true);
  return std::move(builder).finish(x);
}

/// Images of two channels as sequences of patches with a token in front, which alone is classified.
models::Graph patches() {
  models::GraphBuilder builder("patches", {2, 2, 6, 6});
  models::OperatorId x = builder.convolution("patch", models::GraphBuilder::input(),
                                             {.channels = 8, .window = {.kernel = 3, .stride = 3}, .bias = true});
  x = builder.position_embedding("wpe", builder.class_token("token", builder.patches("patches", x)));
  const models::OperatorId qkv = builder.linear("qkv", builder.layer_norm("ln", x), 24, true);
  x = builder.add("sum", builder.attention("attention", qkv, {.heads = 2}), x);
  x = builder.linear("head", builder.select_rows("first", x, 1), 5, true);
  return std::move(builder).finish(x);
}

/// What click-through models do with the rows of a sample.
models::Graph fields() {
  models::GraphBuilder builder = models::GraphBuilder::of_tokens("fields", 3, 4);
  const models::OperatorId wide =
      builder.sum_rows("wide", builder.token_embedding("weights", models::GraphBuilder::input(), 11, 1), true);
  const models::OperatorId table = builder.token_embedding("table", models::GraphBuilder::input(), 11, 6);
  const models::OperatorId deep = builder.linear("deep", builder.join_rows("join", table), 1, true);
  const models::OperatorId sum =
      builder.add("sum", builder.factorization("pairs", table), builder.add("both", deep, wide));
  const models::OperatorId logits = builder.linear("head", sum, 11, true);
  return std::move(builder).finish(logits);
}

/// A layer as DeepSeek-V2 has it: latent attention, whose heads share keys with positions, and experts beside one that
/// all rows go to. Of `capacity` rows of an expert some are dropped.
models::Graph experts(bool normalised, std::uint32_t capacity) {
  models::GraphBuilder builder = models::GraphBuilder::of_tokens("experts", 2, 6);
  models::OperatorId x = builder.token_embedding("wte", models::GraphBuilder::input(), 11, 16);
  const models::OperatorId query = builder.rotary("q_rotary", builder.linear("q", x, 24, false), 2, 4);
  const models::OperatorId narrow = builder.rms_norm("narrow", builder.linear("kv_a", x, 6, false));
  const models::OperatorId turned = builder.rotary("k_rotary", builder.linear("k_rope", x, 4, false), 1);
  const models::OperatorId key = builder.join_heads("keys", builder.linear("k_b", narrow, 16, false), turned, 2);
  const models::OperatorId value = builder.linear("v_b", narrow, 10, false);
  const models::OperatorId context = builder.attention("attention", query, key, value, {.heads = 2, .causal = true});
  x = builder.add("sum_1", builder.linear("o", context, 16, false), x);
  const models::OperatorId gates = builder.route("route", builder.linear("gate", x, 4, false),
                                                 {.top_k = 2, .normalised = normalised, .balance_weight = 0.125F});
  const models::OperatorId rows = builder.dispatch("dispatch", x, gates, capacity);
  const models::OperatorId wide =
      builder.swiglu("act", builder.expert_linear("w1", rows, 8), builder.expert_linear("w3", rows, 8));
  const models::OperatorId routed = builder.combine("combine", builder.expert_linear("w2", wide, 16), gates);
  x = builder.add("sum_2", builder.add("beside", routed, builder.linear("shared", x, 16, true)), x);
  const models::OperatorId head = builder.linear("head", x, 11, false);
  return std::move(builder).finish(head);
}

/// Halves of a layer with a GELU as gate and a squared ReLU, and norms of heads and of rows of queries and keys.
models::Graph other_halves() {
  using models::Activation;
  models::GraphBuilder builder = models::GraphBuilder::of_tokens("halves", 2, 5);
  models::OperatorId x = builder.token_embedding("wte", models::GraphBuilder::input(), 11, 16);
  const models::OperatorId query = builder.rms_norm("q_norm", builder.linear("q", x, 16, true), 4);
  const models::OperatorId key = builder.rms_norm("k_norm", builder.linear("k", x, 8, true));
  const models::OperatorId value = builder.linear("v", x, 8, true);
  x = builder.add("sum_1",
                  builder.attention("attention", query, key, value, {.heads = 4, .kv_heads = 2, .causal = true}), x);
  const models::OperatorId gated = builder.swiglu("geglu", builder.linear("gate", x, 24, false),
                                                  builder.linear("up", x, 24, false), Activation::gelu);
  x = builder.add("sum_2", builder.linear("down", gated, 16, false), x);
  const models::OperatorId up = builder.linear("wide", x, 20, true);
  const models::OperatorId squared = builder.swiglu("squared", up, up, Activation::relu);
  x = builder.add("sum_3", builder.linear("narrow", squared, 16, false), x);
  x = builder.linear("head", x, 11, false);
  return std::move(builder).finish(x);
}

void expect_slopes(const models::Graph& graph) {
  SampleNet net(graph);
  Workspace workspace(net.computation);
  WorkerPool pool(1);
  std::vector<float> gradients = net.flat();
  models::Batch batch;
  const std::unique_ptr<models::Dataset> data = models::open_dataset("synthetic", graph, 1);
  std::vector<std::uint64_t> samples(graph.batch());
  std::iota(samples.begin(), samples.end(), 0);
  models::fill(batch, *data, samples);
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

TEST(FiniteDifferences, Transformer) {
  expect_slopes(transformer(0));
  expect_slopes(transformer(0.3F));
}

TEST(FiniteDifferences, Experts) {
  for (const bool normalised : {false, true}) {
    expect_slopes(experts(normalised, 12));
    expect_slopes(experts(normalised, 4));
  }
}

TEST(FiniteDifferences, OtherHalves) { expect_slopes(other_halves()); }

TEST(FiniteDifferences, Patches) { expect_slopes(patches()); }

TEST(FiniteDifferences, Fields) { expect_slopes(fields()); }

/// Two losses of different rows, a table that is tied to the logits of one of them; one logit per sample.
TEST(FiniteDifferences, SmallNetworksOfTheZoo) {
  expect_slopes(models::make_model(
      {.name = "bert-base", .batch = 2, .sequence = 10, .layers = 1, .hidden = 12, .heads = 3, .vocabulary = 17}));
}

TEST(FiniteDifferences, ALogitPerSample) {
  models::GraphBuilder builder = models::GraphBuilder::of_tokens("clicks", 3, 4);
  const models::OperatorId wide =
      builder.sum_rows("wide", builder.token_embedding("weights", models::GraphBuilder::input(), 11, 1), true);
  const models::OperatorId table = builder.token_embedding("table", models::GraphBuilder::input(), 11, 6);
  const models::OperatorId deep = builder.linear("deep", builder.join_rows("join", table), 1, true);
  const models::OperatorId sum =
      builder.add("both", builder.factorization("pairs", table), builder.add("d", deep, wide));
  expect_slopes(std::move(builder).finish_binary(sum));
}

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
