#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "hccl/parallel/recompute.hpp"
#include "hccl/parallel/sharding/presets.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training/sharded_training.hpp"
#include "tests/support/training/wire_traffic.hpp"

/// What a transformer layer cut over M devices sends, by the closed forms of Shoeybi et al. ("Megatron-LM") and
/// Korthikanti et al. ("Reducing Activation Recomputation in Large Transformer Models"): collectives and their payload
/// as they are launched, and the bytes of a layer on the wires, task by task.
namespace hcclsim::hccl {
namespace {

using models::OperatorKind;

/// By kind, phase, and whether it is a repetition: how often, and the larger side's bytes of each.
struct Launches {
  std::uint32_t count = 0;
  Bytes payload = 0;

  bool operator==(const Launches&) const = default;
};
using LayerTraffic = std::map<std::tuple<OperatorKind, models::Phase, bool>, Launches>;

void PrintTo(const Launches& launches, std::ostream* out) {  // NOLINT(readability-identifier-naming): GoogleTest's
  *out << launches.count << " of " << launches.payload << " bytes";
}

/// Of the second of three layers.
LayerTraffic traffic_of_layer(const models::ModelOptions& model, const TransformerSharding& sharding,
                              const std::string& recompute) {
  const models::Graph whole = models::make_model(model);
  ShardedGraph stage = shard_graph(whole, transformer_strategies(whole, sharding), sharding.devices());
  std::vector<bool> matched;
  mark_recomputed(stage.graph, parse_recompute(recompute), 0, 1, matched);
  const models::Program program = models::lower(stage.graph, {.precision = models::precision_of(models::Amp::o2)});
  LayerTraffic traffic;
  for (const models::Kernel& kernel : program.micro_batch()) {
    if (kernel.kind != models::KernelClass::communication || stage.graph.operators[kernel.op].layer != 1) continue;
    const models::CommunicationWork& work = *kernel.communication;
    EXPECT_EQ(work.group.ranks, sharding.model) << kernel.name;
    const std::uint64_t larger = work.elements * (work.kind == OperatorKind::all_gather ? work.group.ranks : 1);
    Launches& launches = traffic[{work.kind, kernel.phase, kernel.recomputed}];
    ++launches.count;
    launches.payload = larger * size_of(work.dtype);
  }
  return traffic;
}

struct Preset {
  const char* model;
  std::uint32_t hidden;
  Bytes payload;  ///< batch · sequence · hidden · 2
};
constexpr Preset presets[] = {{"gpt3-13b", 5120, 2048ULL * 5120 * 2}, {"llama2-13b", 5120, 41'943'040}};

TEST(LayerTraffic, TwoAllReducesInEitherPass) {
  for (const Preset& preset : presets) {
    for (const std::uint32_t parts : {2U, 4U, 8U}) {
      SCOPED_TRACE(fmt::format("{} over {}", preset.model, parts));
      const models::ModelOptions model{.name = preset.model, .batch = 1, .layers = 3};
      const Launches two{2, preset.payload};
      const LayerTraffic plain{{{OperatorKind::all_reduce, models::Phase::forward, false}, two},
                               {{OperatorKind::all_reduce, models::Phase::backward, false}, two}};
      EXPECT_EQ(traffic_of_layer(model, {.model = parts}, "none"), plain);
      LayerTraffic again = plain;  // six altogether
      again[{OperatorKind::all_reduce, models::Phase::backward, true}] = two;
      EXPECT_EQ(traffic_of_layer(model, {.model = parts}, "full"), again);
    }
  }
}

// Each all_reduce becomes a reduce_scatter and an all_gather of the same volume; the backward pass gathers the inputs
// of both halves once more, for the gradients of their first weights.
TEST(LayerTraffic, SequencesInPartsGatherTwiceMore) {
  for (const Preset& preset : presets) {
    for (const std::uint32_t parts : {2U, 4U, 8U}) {
      SCOPED_TRACE(fmt::format("{} over {}", preset.model, parts));
      const models::ModelOptions model{.name = preset.model, .batch = 1, .layers = 3};
      const Launches two{2, preset.payload};
      const LayerTraffic expected{{{OperatorKind::all_gather, models::Phase::forward, false}, two},
                                  {{OperatorKind::reduce_scatter, models::Phase::forward, false}, two},
                                  {{OperatorKind::all_gather, models::Phase::backward, false}, two},
                                  {{OperatorKind::reduce_scatter, models::Phase::backward, false}, two},
                                  {{OperatorKind::all_gather, models::Phase::backward, true}, two}};
      EXPECT_EQ(traffic_of_layer(model, {.model = parts, .sequence_parallel = true}, "none"), expected);
    }
  }
}

/// All devices' bytes of a step with so many layers, in fp32.
Bytes wire_bytes_of(const std::string& name, std::uint32_t layers, const TransformerSharding& sharding,
                    const std::string& recompute) {
  test::ShardedTraining training;
  training.network = models::make_model(
      {.name = name, .batch = 2, .sequence = 16, .layers = layers, .hidden = 128, .heads = 8, .vocabulary = 64});
  training.devices = sharding.devices();
  training.strategies = transformer_strategies(training.network, sharding);
  training.recompute = recompute;
  return test::wire_bytes(test::plan_of(training, test::stages_of(training, training.network)));
}

// The difference that one more layer makes: 2 (M − 1) times the payload for each all_reduce, of all devices together,
// and the gradients of what every device has whole: norms, and biases behind the sums.
TEST(LayerTraffic, BytesOnTheWires) {
  constexpr Bytes payload = 2 * 16 * 128 * sizeof(float);
  const std::map<std::string, Bytes> whole{{"gpt2-small", (4 + 2) * 128 * sizeof(float)},
                                           {"llama2-7b", 2 * 128 * sizeof(float)}};
  for (const auto& [name, parameters] : whole) {
    for (const std::uint32_t parts : {2U, 4U, 8U}) {
      SCOPED_TRACE(fmt::format("{} over {}", name, parts));
      const auto of_layer = [&, model = name](bool sequence, const std::string& recompute) {
        const TransformerSharding sharding{.model = parts, .sequence_parallel = sequence};
        return wire_bytes_of(model, 3, sharding, recompute) - wire_bytes_of(model, 2, sharding, recompute);
      };
      const Bytes once = (parts - 1) * payload;  // an all_gather or reduce_scatter
      const Bytes gradients = 2 * (parts - 1) * parameters;
      EXPECT_EQ(of_layer(false, "none"), 4 * 2 * once + gradients);
      EXPECT_EQ(of_layer(false, "full"), 6 * 2 * once + gradients);
      EXPECT_EQ(of_layer(true, "none"), (4 + 4 + 2) * once + gradients);
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
