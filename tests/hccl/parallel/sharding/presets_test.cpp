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
using models::Operator;
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
    Traffic& sum = sums[kernel.communication.kind];
    ++sum.count;
    const std::uint64_t ranks =
        kernel.communication.kind == OperatorKind::all_gather ? kernel.communication.group.ranks : 1;
    sum.elements += kernel.communication.elements * ranks;
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

}  // namespace
}  // namespace hcclsim::hccl
