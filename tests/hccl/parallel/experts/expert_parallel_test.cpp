// Experts over devices: the all_to_alls and their bytes, the parts of weights, who sums up which gradients, loads.

#include "hccl/parallel/experts/expert_parallel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "hccl/parallel/experts/expert_places.hpp"
#include "hccl/parallel/sharding/presets.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "models/graph_builder.hpp"
#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using models::OperatorKind;
using test::refusal;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<models::Kernel> all_to_alls(const models::Program& program) {
  std::vector<models::Kernel> found;
  for (const models::Kernel& kernel : program.kernels) {
    const bool one = kernel.kind == models::KernelClass::communication;
    if (one && kernel.communication->kind == OperatorKind::all_to_all) found.push_back(kernel);
  }
  return found;
}

models::Program lowered(const ShardedGraph& network) { return models::lower(network.graph, {}); }

/// Each device has a sample.
ShardedGraph mixtral(Rank devices, Rank experts) {
  const models::Graph whole = models::make_model({.name = "mixtral-8x7b", .batch = devices, .layers = 2});
  return share_experts(shard_graph(whole, {}, devices), {.ranks = experts});
}

TEST(ExpertParallel, FourAllToAllsPerLayer) {
  const models::Program program = lowered(mixtral(8, 8));
  const std::vector<models::Kernel> found = all_to_alls(program);
  ASSERT_EQ(found.size(), 2U * 4);
  for (const models::Kernel& kernel : found) {
    const Bytes bytes = kernel.communication->elements * size_of(kernel.communication->dtype);
    EXPECT_EQ(bytes * 7 / 8, 58'720'256U) << kernel.name;  // 7/8 · 2 choices · 4096 tokens · 4096 features · 2 bytes
    EXPECT_EQ(kernel.communication->group.ranks, 8U);
  }
}

TEST(ExpertParallel, SixWithRecompute) {
  ShardedGraph network = mixtral(8, 8);
  for (models::Operator& op : network.graph.operators) op.recompute = op.layer != models::no_layer;
  EXPECT_EQ(all_to_alls(lowered(network)).size(), 2U * 6);
}

TEST(ExpertParallel, WeightsAndWhoSumsTheirGradients) {
  const ShardedGraph network = mixtral(8, 4);
  const std::vector<models::Parameter>& parameters = network.graph.parameters;
  const auto weight =
      std::ranges::find(parameters, "model.layers.0.block_sparse_moe.experts.w1.weight", &models::Parameter::name);
  ASSERT_NE(weight, parameters.end());
  const auto number = static_cast<std::size_t>(weight - parameters.begin());
  EXPECT_THAT(weight->shape, ElementsAre(2, 14336, 4096));
  EXPECT_EQ(weight->elements, 2U * 14336 * 4096);
  EXPECT_EQ(network.graph.operators[weight->owner].name, "model.layers.0.block_sparse_moe.experts.w1");
  const TensorLayout& layout = network.parameters[number];
  EXPECT_EQ(layout.shape, (models::Shape{8, 14336, 4096}));
  EXPECT_EQ(layout.slice_shape(), (models::Shape{2, 14336, 4096}));
  EXPECT_EQ(layout.offsets(6).front(), 4U);  // device 6 is number 2 of its four
  EXPECT_THAT(network.families[network.mirrors[number]],
              ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7)));
  EXPECT_EQ(layout.replicas(), network.families[network.mirrors[number]]);
  EXPECT_THAT(network.families[network.mirrors.front()], ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
  const auto way = std::ranges::find(network.graph.operators, OperatorKind::all_to_all, &models::Operator::kind);
  EXPECT_THAT(network.families[way->group.family], ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
  EXPECT_EQ(way->shape(), (models::Shape{2, 4 * 1024, 4096}));

  const ShardedGraph alone = mixtral(8, 8);
  EXPECT_EQ(alone.mirrors[number], ShardedGraph::no_family);
}

TEST(ExpertParallel, BesideModelParallel) {
  // Four replicas of two devices each, which share features: devices 2 · replica + part.
  const models::Graph whole = models::make_model({.name = "tinymoe", .batch = 4});
  const ShardedGraph network =
      share_experts(shard_graph(whole, transformer_strategies(whole, {.data = 4, .model = 2}), 8), {.ranks = 2});
  std::size_t weights = 0;
  for (std::size_t i = 0; i < network.parameters.size(); ++i) {
    const TensorLayout& layout = network.parameters[i];
    if (layout.shape.rank() != 3) continue;
    ++weights;
    EXPECT_EQ(layout.slice_shape().elements(), layout.shape.elements() / 4) << to_string(layout);
    EXPECT_EQ(layout.slice_shape().sizes(), network.graph.parameters[i].shape);
    EXPECT_EQ(layout.offsets(2).front(), 4U);  // part 0 of replica 1 has the other experts
    EXPECT_EQ(layout.offsets(4).front(), 0U);
    EXPECT_THAT(network.families[network.mirrors[i]],
                ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7)));
    EXPECT_EQ(layout.replicas(), network.families[network.mirrors[i]]);
  }
  EXPECT_EQ(weights, 3U);
  const auto way = std::ranges::find(network.graph.operators, OperatorKind::all_to_all, &models::Operator::kind);
  EXPECT_THAT(network.families[way->group.family],
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7)));
  EXPECT_EQ(network.values.size(), network.graph.first_values().back());
}

// Four replicas of two devices each, which share positions: both have all rows of their replica for the experts, and
// devices with the same place in their replicas share these. Devices 2 · replica + place.
TEST(ExpertParallel, BesideContextParallel) {
  const models::Graph whole = models::make_model({.name = "tinymoe", .batch = 4});
  const StrategyMap strategies = transformer_strategies(whole, {.data = 4, .context = 2});
  const ShardedGraph network =
      share_experts(shard_graph(whole, strategies, 8, {.enable_alltoall = true}), {.ranks = 2});
  for (std::size_t i = 0; i < network.parameters.size(); ++i) {
    const TensorLayout& layout = network.parameters[i];
    if (layout.shape.rank() != 3) continue;
    EXPECT_EQ(layout.slice_shape().elements(), layout.shape.elements() / 2) << to_string(layout);
    EXPECT_THAT(network.families[network.mirrors[i]], ElementsAre(ElementsAre(0, 1, 4, 5), ElementsAre(2, 3, 6, 7)));
  }
  const auto dispatch = std::ranges::find(
      network.graph.operators, "model.layers.0.block_sparse_moe.dispatch.all_to_all", &models::Operator::name);
  ASSERT_NE(dispatch, network.graph.operators.end());
  EXPECT_THAT(network.families[dispatch->group.family],
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7)));
}

TEST(ExpertParallel, LatentAttentionBesideModelParallel) {
  const models::Graph whole =
      models::make_model({.name = "deepseek-v2-lite", .batch = 2, .sequence = 64, .layers = 2, .vocabulary = 64});
  const ShardedGraph network =
      share_experts(shard_graph(whole, transformer_strategies(whole, {.data = 2, .model = 4}), 8), {.ranks = 2});
  const auto find = [&](std::string_view name) {
    return *std::ranges::find(network.graph.operators, name, &models::Operator::name);
  };
  const models::Operator core = find("model.layers.1.self_attn.core");
  EXPECT_EQ(core.heads, 4U);
  EXPECT_EQ(core.shape(), (models::Shape{64, 4 * 128}));
  EXPECT_EQ(models::key_width(core), 192U);
  EXPECT_EQ(find("model.layers.1.self_attn.k_rope_proj").shape(), (models::Shape{64, 64}));
  EXPECT_EQ(find("model.layers.1.mlp.experts.up_proj").shape(), (models::Shape{32, 2 * 6, 1408 / 4}));
}

TEST(ExpertLoad, Shares) {
  EXPECT_THAT(expert_load({}, 0, 4, 100), ElementsAre(25, 25, 25, 25));
  EXPECT_THAT(expert_load({}, 0, 3, 8), ElementsAre(3, 3, 2));
  std::vector<std::uint64_t> zipf = expert_load({.skew = 1, .seed = 7}, 3, 4, 2500);
  EXPECT_EQ(zipf, expert_load({.skew = 1, .seed = 7}, 3, 4, 2500));
  std::ranges::sort(zipf, std::greater());
  EXPECT_THAT(zipf, ElementsAre(1200, 600, 400, 300));  // 1, 1/2, 1/3, 1/4 of 25/12
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    const std::vector<std::uint64_t> load =
        expert_load({.skew = 0.37 * static_cast<double>(seed), .seed = seed}, 1, 64, 4097);
    EXPECT_EQ(std::accumulate(load.begin(), load.end(), std::uint64_t{0}), 4097U);
  }
}

TEST(ExpertParallel, LoadOfDroplessExperts) {
  const models::Graph whole = models::make_model({.name = "tinymoe", .batch = 4, .dropless = true});
  const ExpertParallel options{.ranks = 4, .load = {.skew = 1, .seed = 5}};
  const ShardedGraph network = share_experts(shard_graph(whole, {}, 4), options);
  const std::vector<std::uint64_t> load = expert_load(options.load, 0, 8, 16 * 2);
  std::vector<std::uint64_t> of_devices(4, 0);
  for (std::size_t e = 0; e < 8; ++e) of_devices[e / 2] += load[e];
  const std::vector<models::Kernel> found = all_to_alls(lowered(network));
  ASSERT_EQ(found.size(), 4U);
  for (std::size_t from = 0; from < 4; ++from) {
    for (std::size_t to = 0; to < 4; ++to) {
      const std::size_t pair = from * 4 + to;
      EXPECT_EQ(found[0].communication->counts[pair], of_devices[to] * 32);    // to the experts
      EXPECT_EQ(found[1].communication->counts[pair], of_devices[from] * 32);  // and back
      EXPECT_EQ(found[2].communication->counts[pair], of_devices[to] * 32);    // gradients of what came back
      EXPECT_EQ(found[3].communication->counts[pair], of_devices[from] * 32);
    }
  }
  const auto product = std::ranges::find(network.graph.operators, OperatorKind::expert_linear, &models::Operator::kind);
  EXPECT_EQ(product->shape().size(1), (std::ranges::max(of_devices) * 4 + 1) / 2);
  // Even loads are equal parts.
  EXPECT_TRUE(
      all_to_alls(lowered(share_experts(shard_graph(whole, {}, 4), {.ranks = 4})))[0].communication->counts.empty());
}

// Each place has the rows of its own experts; what all have is the most of them.
TEST(ExpertPlaces, RowsOfEachPlace) {
  const models::Graph whole = models::make_model({.name = "tinymoe", .batch = 8, .dropless = true});
  const ExpertParallel options{.ranks = 4, .load = {.skew = 2, .seed = 5}};
  const ShardedGraph network = share_experts(shard_graph(whole, {}, 8), options);
  ASSERT_TRUE(experts_differ(network.graph));
  EXPECT_THAT(expert_places(network), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  const std::vector<std::uint64_t> load = expert_load(options.load, 0, 8, 16 * 2);
  const models::Program program = lowered(network);
  std::vector<std::uint32_t> rows;
  for (Rank place = 0; place < 4; ++place) {
    const models::Graph at = graph_of_place(network.graph, place);
    for (models::OperatorId id = 0; id < at.operators.size(); ++id) {
      const models::Operator& op = at.operators[id];
      if (op.kind == OperatorKind::combine) {
        EXPECT_EQ(op.shape(), network.graph.operators[id].shape());
      }
      if (op.kind != OperatorKind::expert_linear) continue;
      const std::uint64_t own = 4 * (load[2 * place] + load[2 * place + 1]);
      EXPECT_EQ(op.shape().size(1), (own + 1) / 2) << op.name;
      rows.push_back(op.shape().size(1));
    }
    const auto made = program_of_place(program, models::lower(at, {}));
    std::size_t others = 0;
    for (std::uint32_t number = 0; number < program.micro_batch_kernels; ++number) {
      EXPECT_EQ(made->kernels[number].name, program.kernels[number].name);
      EXPECT_EQ(made->kernels[number].communication, program.kernels[number].communication);
      if (made->kernels[number].flops != program.kernels[number].flops) ++others;
    }
    const auto most = std::ranges::find(network.graph.operators, OperatorKind::expert_linear, &models::Operator::kind);
    EXPECT_EQ(others > 0, rows.back() != most->shape().size(1));
  }
  EXPECT_EQ(rows.size(), 4U * 3);
}

// Of so uneven a load nothing comes to most experts; their devices do not wait for kernels on the rows of others.
TEST(ExpertPlaces, WithoutRows) {
  const models::Graph whole = models::make_model({.name = "tinymoe", .batch = 8, .dropless = true});
  const ExpertParallel options{.ranks = 8, .load = {.skew = 1000, .seed = 5}};
  const ShardedGraph network = share_experts(shard_graph(whole, {}, 8), options);
  const std::vector<std::uint64_t> load = expert_load(options.load, 0, 8, 16 * 2);
  EXPECT_EQ(std::ranges::count(load, 0U), 7);
  for (Rank place = 0; place < 8; ++place) {
    const models::Graph at = graph_of_place(network.graph, place);
    const auto product = std::ranges::find(at.operators, OperatorKind::expert_linear, &models::Operator::kind);
    EXPECT_EQ(product->shape().size(1), 8 * load[place]);
    const models::Program program = models::lower(at, {});
    const auto kernel = std::ranges::find_if(program.kernels, [&](const models::Kernel& one) {
      return one.op == product - at.operators.begin() && one.kind == models::KernelClass::matmul;
    });
    EXPECT_EQ(kernel->flops > 0, load[place] > 0);
  }
}

TEST(ExpertParallel, Refuses) {
  const auto share = [](std::string_view model, Rank devices, const ExpertParallel& options) {
    return [=] {
      const models::Graph whole = models::make_model({.name = std::string(model), .batch = devices});
      static_cast<void>(share_experts(shard_graph(whole, {}, devices), options));
    };
  };
  EXPECT_THAT(refusal("option", share("tinygpt", 4, {.ranks = 2})), HasSubstr("Tiny GPT has no experts"));
  EXPECT_THAT(refusal("option", share("tinymoe", 6, {.ranks = 3})), HasSubstr("3 ranks cannot share the 8 experts"));
  EXPECT_THAT(refusal("option", share("tinymoe", 6, {.ranks = 4})),
              HasSubstr("4 ranks cannot share experts where 6 have rows of their own"));
  EXPECT_THAT(refusal("option", share("tinymoe", 4, {.ranks = 0})), HasSubstr("0 ranks cannot share"));
  EXPECT_THAT(refusal("option", share("tinymoe", 4, {.ranks = 2, .load = {.skew = 1}})), HasSubstr("have a capacity"));
  EXPECT_THAT(refusal("option", [] { static_cast<void>(expert_load({.skew = -1}, 0, 2, 2)); }),
              HasSubstr("must be 0 to 1000"));
}

}  // namespace
}  // namespace hcclsim::hccl
