#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "hccl/parallel/sharding/presets.hpp"
#include "hccl/parallel/sharding/region.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/hccl/training/numerics/trained.hpp"
#include "tests/support/training/sharded_training.hpp"

/// Regions with strategies of their own, and Layouts of matrices of devices, in pipelines of micro-batches whose
/// parameters replicas share: they train as one device, but for the order of sums.
namespace hcclsim::hccl {
namespace {

using test::ShardedTraining;

/// Four devices for each stage.
ShardedTraining four_devices() {
  ShardedTraining training{
      .network = models::make_model(
          {.name = "gpt2-small", .batch = 4, .sequence = 8, .layers = 2, .hidden = 16, .heads = 4, .vocabulary = 32}),
      .devices = 4};
  training.options.data = "synthetic:96";
  training.options.learning_rate = device::LearningRate(0.05);
  return training;
}

/// The second half of a layer, cut by what its first product makes.
void add_region(ShardedTraining& training, const std::string& layer, const Cuts& rows, std::uint32_t outputs) {
  ShardRegion region;
  for (models::OperatorId id = 0; id < training.network.operators.size(); ++id) {
    if (training.network.operators[id].name.starts_with(layer + ".mlp.")) region.operators.insert(id);
  }
  region.inputs = {rows};
  region.parameters = {{layer + ".mlp.c_fc.weight", {outputs, 1}}};
  training.strategies.merge(region_strategies(training.network, region, training.devices));
  training.sharding.dataset = Cuts{1, 1};  // every device reads the whole batch
}

/// A matrix of 2 × 2: rows along its first axis and outputs along its second, or features along both, the last one
/// first.
void add_layouts(ShardedTraining& training, bool crossed) {
  LayoutStrategy first;
  first.matrix = {{2, 2}};
  first.inputs.push_back(crossed ? TensorMap{{1, 0}, {}} : TensorMap{{1}, {}});
  first.inputs.push_back(crossed ? TensorMap{{}, {}} : TensorMap{{0}, {}});
  LayoutStrategy second;
  second.matrix = first.matrix;
  second.inputs.push_back(crossed ? TensorMap{{}, {0, 1}} : TensorMap{{1}, {0}});
  second.inputs.push_back(crossed ? TensorMap{{}, {0, 1}} : TensorMap{{}, {0}});
  for (const char* const layer : {"h.0", "h.1"}) {
    training.strategies[fmt::format("{}.mlp.c_fc", layer)].layout = first;
    training.strategies[fmt::format("{}.mlp.c_proj", layer)].layout = second;
  }
}

ShardedTraining training_in_parts(std::string_view what) {
  ShardedTraining training = four_devices();
  if (what == "region") add_region(training, "h.1", {2, 1}, 2);
  if (what == "regions") {
    add_region(training, "h.0", {1, 1}, 4);
    add_region(training, "h.1", {4, 1}, 1);
  }
  if (what == "layouts") add_layouts(training, false);
  if (what == "crossed layouts") add_layouts(training, true);
  return training;
}

void expect_parts_as_alone(const ShardedTraining& training) {
  test::expect_near(test::train(training), test::train(test::alone(training)), 2e-5);
}

class RegionsAndLayouts : public testing::TestWithParam<const char*> {};

TEST_P(RegionsAndLayouts, TrainAsOneDevice) { expect_parts_as_alone(training_in_parts(GetParam())); }

TEST_P(RegionsAndLayouts, InStagesWithSharedParametersAndRecomputation) {
  ShardedTraining training = training_in_parts(GetParam());
  training.shape = {.stages = 2, .micro_batches = 2};
  training.recompute = "full";
  training.optimizer_parallel = "on:threshold=0";
  expect_parts_as_alone(training);
}

TEST_P(RegionsAndLayouts, TogetherWithEverythingAtLength) {
  for (const std::uint32_t stages : {1U, 2U}) {
    for (const char* const sharing : {"zero1", "zero2", "zero3", "on:threshold=0,shard=2"}) {
      for (const bool alltoall : {false, true}) {
        for (const char* const recompute : {"none", "layers:1"}) {
          SCOPED_TRACE(fmt::format("{} stages, {}, all_to_all {}, recompute {}", stages, sharing, alltoall, recompute));
          ShardedTraining training = training_in_parts(GetParam());
          training.shape = {.stages = stages, .micro_batches = 2};
          training.optimizer_parallel = sharing;
          training.recompute = recompute;
          training.sharding.enable_alltoall = alltoall;
          expect_parts_as_alone(training);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RegionsAndLayouts, testing::Values("region", "regions", "layouts", "crossed layouts"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, ' ');
                           return name;
                         });

}  // namespace
}  // namespace hcclsim::hccl
