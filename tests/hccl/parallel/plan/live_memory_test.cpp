#include "hccl/parallel/plan/live_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/training/programs.hpp"

namespace hcclsim::hccl {
namespace {

using models::Phase;

/// Forward keeps 10 bytes and needs 5 more while it runs; backward needs 3 of its own.
models::Program program_by_hand() {
  models::Program program;
  program.kernels = {test::timed_kernel("f0", Phase::forward, 1), test::timed_kernel("f1", Phase::forward, 1),
                     test::timed_kernel("b0", Phase::backward, 1), test::timed_kernel("b1", Phase::backward, 1)};
  program.micro_batch_kernels = 4;
  program.tensors = {{.bytes = 10, .first_kernel = 0, .last_kernel = 2, .writer = 0},
                     {.bytes = 5, .first_kernel = 0, .last_kernel = 1, .writer = 0},
                     {.bytes = 3, .first_kernel = 2, .last_kernel = 3, .writer = 2}};
  return program;
}

TEST(LiveMemory, OneMicroBatch) {
  const LivePeak peak = live_peak(program_by_hand(), {});
  EXPECT_EQ(peak.bytes, 15U);
  EXPECT_EQ(peak.kernel, 0U);
}

TEST(LiveMemory, MicroBatchesUnderWay) {
  const PipelineShape shape{4, 8, 1, PipelineSchedule::one_f_one_b};
  for (std::uint32_t stage = 0; stage < 4; ++stage) {
    const LivePeak peak = live_peak(program_by_hand(), cells_of_stage(shape, stage));
    EXPECT_EQ(peak.bytes, 10U * (4 - stage) + 5) << stage;
    EXPECT_EQ(peak.micro_batches, 4 - stage);
  }
  const PipelineShape gpipe{4, 8, 1, PipelineSchedule::gpipe};
  EXPECT_EQ(live_peak(program_by_hand(), cells_of_stage(gpipe, 3)).bytes, 85U);
}

TEST(LiveMemory, TensorsAtThePeakMakeItUp) {
  const std::vector<Cell> cells = cells_of_stage({4, 8, 1, PipelineSchedule::one_f_one_b}, 1);
  const std::vector<LiveAtPeak> tensors = tensors_at_peak(program_by_hand(), cells);
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].kernel, "f0");
  EXPECT_EQ(tensors[0].bytes, 10U);
  EXPECT_EQ(tensors[0].copies, 3U);
  EXPECT_EQ(tensors[1].copies, 1U);
  Bytes sum = 0;
  for (const LiveAtPeak& tensor : tensors) sum += tensor.bytes * tensor.copies;
  EXPECT_EQ(sum, live_peak(program_by_hand(), cells).bytes);
}

/// Gradients of 40, 20 and 80 bytes, written by three kernels of a backward pass of four.
TEST(LiveMemory, GradientsWaitWholeUntilTheyAreReduced) {
  models::Program program;
  for (const char* const name : {"b0", "b1", "b2", "b3"}) {
    program.kernels.push_back(test::timed_kernel(name, Phase::backward, 1));
  }
  program.micro_batch_kernels = 4;
  std::uint32_t index = 0;
  for (const std::uint64_t elements : {10U, 5U, 20U}) {
    program.parameters.push_back({.name = "w", .elements = elements, .shards = 2, .keeps_part = true});
    program.gradients.push_back({.name = "w", .parameter = index, .elements = elements, .kernel = index});
    ++index;
  }
  const auto reductions = [](const std::vector<Segment>& segments) {
    std::vector<Reduction> all;
    for (const Segment& segment : segments) all.push_back({.segment = segment, .scattered = true});
    return all;
  };
  EXPECT_EQ(most_waiting_gradients(program, reductions({{0, 0}, {1, 1}, {2, 2}}), true), 80U);
  EXPECT_EQ(most_waiting_gradients(program, reductions({{0, 1}, {2, 2}}), true), 80U);
  EXPECT_EQ(most_waiting_gradients(program, reductions({{0, 0}, {1, 2}}), true), 100U);
  EXPECT_EQ(most_waiting_gradients(program, reductions({{0, 2}}), true), 140U);
  EXPECT_EQ(most_waiting_gradients(program, reductions({{0, 0}, {1, 1}, {2, 2}}), false), 140U);
  for (models::ParameterShare& share : program.parameters) share.keeps_part = false;  // kept whole: counted anyway
  EXPECT_EQ(most_waiting_gradients(program, reductions({{0, 2}}), true), 0U);
}

}  // namespace
}  // namespace hcclsim::hccl
