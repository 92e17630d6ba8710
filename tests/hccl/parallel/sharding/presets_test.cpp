#include "hccl/parallel/sharding/presets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::OperatorKind;
using models::Phase;
using testing::HasSubstr;

constexpr std::uint32_t batch = 4;
constexpr std::uint32_t sequence = 16;
constexpr std::uint32_t hidden = 64;
constexpr std::uint32_t layers = 2;

Graph transformer(std::string name) {
  return models::make_model({.name = std::move(name),
                             .batch = batch,
                             .sequence = sequence,
                             .layers = layers,
                             .hidden = hidden,
                             .heads = 8,
                             .vocabulary = 128});
}

ShardedGraph cut(const std::string& name, const TransformerSharding& sharding) {
  const Graph whole = transformer(name);
  return shard_graph(whole, transformer_strategies(whole, sharding), sharding.devices(), {.enable_alltoall = true});
}

struct Traffic {
  std::uint64_t count = 0;
  std::uint64_t elements = 0;  ///< of what comes or goes, whichever is more
  bool operator==(const Traffic&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Traffic& traffic) {
  return out << traffic.count << " of " << traffic.elements << " elements";
}

/// Traffic of one layer in a phase, by kind.
std::map<OperatorKind, Traffic> traffic(const ShardedGraph& sharded, std::uint32_t layer, Phase phase) {
  const models::Program program = models::lower(sharded.graph, {});
  std::map<OperatorKind, Traffic> sums;
  for (const models::Kernel& kernel : program.micro_batch()) {
    if (kernel.kind != models::KernelClass::communication || kernel.phase != phase) continue;
    if (sharded.graph.operators[kernel.op].layer != layer) continue;
    Traffic& sum = sums[kernel.communication->kind];
    ++sum.count;
    const std::uint64_t ranks =
        kernel.communication->kind == OperatorKind::all_gather ? kernel.communication->group.ranks : 1;
    sum.elements += kernel.communication->elements * ranks;
  }
  return sums;
}

using ByKind = std::map<OperatorKind, Traffic>;

// Two all_reduces of samples x positions x features in either pass.
TEST(Presets, ModelParallelLayers) {
  for (const std::string name : {"gpt2-small", "llama2-7b", "bert-base"}) {
    const ShardedGraph sharded = cut(name, {.data = 2, .model = 4});
    constexpr std::uint64_t elements = std::uint64_t{batch} / 2 * sequence * hidden;
    const ByKind expected{{OperatorKind::all_reduce, {2, 2 * elements}}};
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      EXPECT_EQ(traffic(sharded, layer, Phase::forward), expected) << name;
      EXPECT_EQ(traffic(sharded, layer, Phase::backward), expected) << name;
    }
    EXPECT_EQ(traffic(sharded, models::no_layer, Phase::forward), ByKind{}) << name;
  }
}

// The all_reduces become pairs; inputs of the first linear operators are gathered again.
TEST(Presets, SequenceParallelLayers) {
  for (const std::string name : {"gpt2-small", "llama2-7b", "bert-base"}) {
    const ShardedGraph sharded = cut(name, {.data = 2, .model = 4, .sequence_parallel = true});
    constexpr std::uint64_t elements = std::uint64_t{batch} / 2 * sequence * hidden;
    const ByKind forward{{OperatorKind::all_gather, {2, 2 * elements}},
                         {OperatorKind::reduce_scatter, {2, 2 * elements}}};
    const ByKind backward{{OperatorKind::all_gather, {4, 4 * elements}},
                          {OperatorKind::reduce_scatter, {2, 2 * elements}}};
    EXPECT_EQ(traffic(sharded, 0, Phase::forward), forward) << name;
    EXPECT_EQ(traffic(sharded, 0, Phase::backward), backward) << name;
  }
}

/// Collectives between the kernels of an operator.
Traffic inside(const ShardedGraph& sharded, OperatorKind of, Phase phase, OperatorKind kind) {
  const models::Program program = models::lower(sharded.graph, {});
  Traffic sum;
  for (const models::Kernel& kernel : program.micro_batch()) {
    if (kernel.kind != models::KernelClass::communication || kernel.phase != phase) continue;
    if (sharded.graph.operators[kernel.op].kind != of || kernel.communication->kind != kind) continue;
    ++sum.count;
    sum.elements += kernel.communication->elements;
  }
  return sum;
}

// Rows of tokens are added up; of each row of logits the maximum, the sum and the logit of the label.
TEST(Presets, VocabularyParallel) {
  for (const std::string name : {"gpt2-small", "llama2-7b", "qwen3-0.6b"}) {
    const ShardedGraph sharded = cut(name, {.data = 2, .model = 4, .vocabulary_parallel = true});
    constexpr std::uint64_t rows = std::uint64_t{batch} / 2 * sequence;
    EXPECT_EQ(inside(sharded, OperatorKind::loss, Phase::forward, OperatorKind::all_reduce), (Traffic{2, 3 * rows}));
    EXPECT_EQ(sharded.parameters.front().slice_shape(), (models::Shape{32, hidden}));
    EXPECT_EQ(traffic(sharded, models::no_layer, Phase::forward).at(OperatorKind::all_reduce),
              (Traffic{3, rows * hidden + 3 * rows}));
    EXPECT_EQ(sharded.graph.operators.back().loss_parts.front().gradient_factor, 0.5);
    EXPECT_EQ(sharded.graph.operators.back().loss_parts.front().classes.ranks, 4U);
  }
  const ShardedGraph whole = cut("gpt2-small", {.data = 2, .model = 4});
  EXPECT_EQ(whole.graph.operators.back().loss_parts.front().gradient_factor, 0.125);
}

// Queries, keys and values are exchanged before the attention, its result behind it.
TEST(Presets, UlyssesExchangesPositionsForHeads) {
  constexpr std::uint64_t elements = std::uint64_t{batch} * sequence / 2 * hidden;
  const ShardedGraph packed = cut("gpt2-small", {.context = 2});
  EXPECT_EQ(traffic(packed, 0, Phase::forward), (ByKind{{OperatorKind::all_to_all, {2, 4 * elements}}}));
  EXPECT_EQ(traffic(packed, 0, Phase::backward), (ByKind{{OperatorKind::all_to_all, {2, 4 * elements}}}));
  const ShardedGraph three = cut("bert-base", {.context = 2});
  EXPECT_EQ(traffic(three, 0, Phase::forward), (ByKind{{OperatorKind::all_to_all, {4, 4 * elements}}}));
}

// Keys and values go round in three steps of four; their gradients go round with them, and home.
TEST(Presets, KeysAndValuesGoRoundARing) {
  constexpr std::uint64_t elements = 2 * (std::uint64_t{batch} * sequence / 4 * hidden);
  const ShardedGraph sharded = cut("gpt2-small", {.context = 4, .context_kind = ContextKind::ring});
  EXPECT_EQ(traffic(sharded, 0, Phase::forward), (ByKind{{OperatorKind::neighbour_exchange, {3, 3 * elements}}}));
  EXPECT_EQ(traffic(sharded, 0, Phase::backward), (ByKind{{OperatorKind::neighbour_exchange, {7, 7 * elements}}}));
}

TEST(Presets, EveryTransformerOfTheZoo) {
  const std::vector<std::string> names{"gpt2-small", "llama2-7b", "bert-base", "pangu-2.6b", "mixtral-8x7b"};
  for (const std::string& name : names) {
    for (const TransformerSharding& sharding :
         {TransformerSharding{.data = 4, .model = 2},
          TransformerSharding{.data = 2, .model = 2, .sequence_parallel = true},
          TransformerSharding{.data = 2, .context = 2, .model = 2, .sequence_parallel = true}}) {
      const Graph whole = transformer(name);
      const ShardedGraph sharded = cut(name, sharding);
      std::uint64_t parts = 0;
      for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
        const Rank copies = sharded.mirrors[i] == ShardedGraph::no_family
                                ? 1
                                : static_cast<Rank>(sharded.families[sharded.mirrors[i]].front().size());
        EXPECT_EQ(sharded.graph.parameters[i].elements * sharding.devices() / copies, whole.parameters[i].elements)
            << name << " " << whole.parameters[i].name;
        parts += sharding.devices() / copies;
      }
      EXPECT_GT(parts, whole.parameters.size()) << name;  // some are cut
    }
  }
}

TEST(Presets, Refused) {
  const Graph graph = transformer("gpt2-small");
  EXPECT_THAT(test::refusal("strategy", [&] { (void)transformer_strategies(graph, {.model = 0}); }),
              HasSubstr("data 1 x context 1 x model 0 devices"));
  EXPECT_THAT(test::refusal("strategy", [&] { (void)cut("gpt2-small", {.model = 16}); }),
              HasSubstr("cannot be shared by 16 devices"));
  const Graph images = models::make_model({.name = "lenet", .batch = 4});
  EXPECT_THAT(test::refusal("strategy", [&] { (void)transformer_strategies(images, {.context = 2}); }),
              HasSubstr("need sequences of tokens"));
}

}  // namespace
}  // namespace hcclsim::hccl
