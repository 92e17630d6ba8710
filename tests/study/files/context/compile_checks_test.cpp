#include "study/files/context/compile_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/zoo/zoo.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using testing::HasSubstr;

RunSpec semi_auto(std::uint32_t stages = 1) {
  RunSpec spec;
  spec.parallel_mode = "semi_auto_parallel";
  spec.step.shape.stages = stages;
  return spec;
}

std::string refused(const RunSpec& spec, Rank npus, std::uint32_t micro_batches) {
  return test::refusal("runtime-error", [&] { check_compilation(spec, npus, micro_batches); });
}

/// R1.8 and P3.31.
TEST(CompileChecks, DevicesAndMicroBatches) {
  for (const Rank npus : {1, 2, 4, 8, 16, 24}) check_compilation(semi_auto(), npus, 1);
  for (const Rank npus : {3, 5, 6, 12}) EXPECT_THAT(refused(semi_auto(), npus, 1), HasSubstr("device_num")) << npus;
  EXPECT_THAT(refused(semi_auto(3), 8, 3), HasSubstr("pipeline_stages 3 does not divide device_num 8"));
  EXPECT_THAT(refused(semi_auto(4), 8, 3), HasSubstr("pipeline_stages 4: a training step needs as many micro-batches"));
  RunSpec inference = semi_auto(4);
  inference.step.shape.forward_only = true;
  check_compilation(inference, 8, 1);
  // Of other modes, and without a context, nothing is checked.
  RunSpec data = semi_auto();
  data.parallel_mode = "data_parallel";
  check_compilation(data, 3, 1);
  check_compilation({}, 3, 1);
}

/// R1.8: a shard size beyond the devices.
TEST(CompileChecks, ShardSize) {
  RunSpec spec = semi_auto(2);
  spec.parallel.optimizer = {.kind = hccl::OptimizerParallelKind::on, .shard = 8};
  check_compilation(spec, 8, 2);  // more than the 4 replicas
  spec.parallel.optimizer.shard = 9;
  EXPECT_THAT(refused(spec, 8, 2), HasSubstr("optimizer_weight_shard_size 9 is more than the 8 devices"));
}

struct Cuts {
  std::vector<std::vector<std::uint32_t>> inputs;
  const char* kind;  ///< of the error; null: accepted
  const char* says;
};

/// D9.1, D9.2 and D9.3 of images (N, 3, H, W) with labels (N), on 4 devices.
TEST(CompileChecks, DatasetStrategies) {
  const models::Graph images = models::make_model({.name = "resnet50", .batch = 8});
  const std::vector<Cuts> all{
      {{{4, 1, 1, 1}, {4}}, nullptr, ""},
      {{{1, 1, 1, 1}, {1}}, nullptr, ""},
      {{{4, 1, 1, 1}, {1}}, nullptr, ""},
      {{{4, 1, 1, 1}}, "runtime-error", "has 1 tuple;"},
      {{{4, 1, 1}, {4}}, "runtime-error", "input 0 has 4 dimensions, its tuple 3"},
      {{{2, 1, 2, 1}, {1}}, "runtime-error", "in several dimensions"},
      {{{4, 1, 1, 1}, {2}}, "runtime-error", "into 4 and into 2 slices"},
      {{{1, 1, 1, 1}, {4}}, "runtime-error", "input 0 has most dimensions"},
      {{{3, 1, 1, 1}, {3}}, "runtime-error", "3 slices do not divide the 4 devices"},
      {{{2, 1, 1, 1}, {2}}, "runtime-error", "2 slices on 4 devices"},
      {{{1, 1, 4, 1}, {1}}, "runtime-error", "4 slices on 4 devices"},
  };
  for (const Cuts& cuts : all) {
    RunSpec spec = semi_auto();
    spec.dataset_cuts = cuts.inputs;
    if (cuts.kind == nullptr) {
      check_dataset_cuts(spec, images, 4);
    } else {
      EXPECT_THAT(test::refusal(cuts.kind, [&] { check_dataset_cuts(spec, images, 4); }), HasSubstr(cuts.says));
    }
  }
  const models::Graph tokens = models::make_model(
      {.name = "gpt2-small", .batch = 1, .sequence = 12, .layers = 1, .hidden = 8, .heads = 2, .vocabulary = 16});
  const auto check_tokens = [&](const std::vector<std::vector<std::uint32_t>>& cuts, Rank devices) {
    RunSpec spec = semi_auto();
    spec.dataset_cuts = cuts;
    check_dataset_cuts(spec, tokens, devices);
  };
  check_tokens({{4, 1}, {1, 4}}, 4);  // labels are read as the loss needs them
  check_tokens({{4, 1}, {1, 1}}, 4);
  EXPECT_THAT(test::refusal("runtime-error",
                            [&] {
                              check_tokens({{8, 1}, {1, 8}}, 8);
                            }),
              HasSubstr("the 12 labels of a sample cannot be cut into 8 equal slices"));
  EXPECT_THAT(test::refusal("runtime-error",
                            [&] {
                              check_tokens({{2, 1}, {1, 2}}, 4);
                            }),
              HasSubstr("2 slices on 4 devices"));
  EXPECT_THAT(test::refusal("runtime-error",
                            [&] {
                              check_tokens({{1, 1}, {1, 4}}, 4);
                            }),
              HasSubstr("input 0 has most dimensions"));
  RunSpec inference = semi_auto();
  inference.step.shape.forward_only = true;
  inference.dataset_cuts = {{4, 1, 1, 1}};
  check_dataset_cuts(inference, images, 4);
}

}  // namespace
}  // namespace hcclsim::study
