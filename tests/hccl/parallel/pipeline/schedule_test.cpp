#include "hccl/parallel/pipeline/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using models::Phase;
using testing::ElementsAre;
using testing::HasSubstr;

std::string written(const PipelineShape& shape, std::uint32_t stage) {
  return to_string(cells_of_stage(shape, stage), shape.chunks);
}

std::vector<std::uint32_t> peaks(const PipelineShape& shape) {
  std::vector<std::uint32_t> peaks;
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
    peaks.push_back(most_live_cells(cells_of_stage(shape, stage)));
  }
  return peaks;
}

TEST(PipelineSchedule, OneForwardOneBackward) {
  const PipelineShape shape{.stages = 4, .micro_batches = 8};
  EXPECT_EQ(written(shape, 0), "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
  EXPECT_EQ(written(shape, 1), "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7");
  EXPECT_EQ(written(shape, 2), "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7");
  EXPECT_EQ(written(shape, 3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
}

TEST(PipelineSchedule, Interleaved) {
  const PipelineShape shape{2, 4, 2, PipelineSchedule::one_f_one_b_interleave};
  EXPECT_EQ(written(shape, 0), "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 B1.3 B0.2 B0.3");
  EXPECT_EQ(written(shape, 1), "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3");
}

TEST(PipelineSchedule, AllForwardThenAllBackward) {
  EXPECT_EQ(written({2, 2, 1, PipelineSchedule::gpipe}, 1), "F0 F1 B0 B1");
  EXPECT_EQ(written({2, 2, 2, PipelineSchedule::gpipe_interleave}, 0), "F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1");
}

TEST(PipelineSchedule, WithoutAPipelineMicroBatchesFollowEachOther) {
  EXPECT_EQ(written({.stages = 1, .micro_batches = 3}, 0), "F0 B0 F1 B1 F2 B2");
}

TEST(PipelineSchedule, LiveActivations) {
  using enum PipelineSchedule;
  EXPECT_THAT(peaks({2, 4, 1, one_f_one_b}), ElementsAre(2, 1));
  EXPECT_THAT(peaks({4, 8, 1, one_f_one_b}), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(peaks({8, 32, 1, one_f_one_b}), ElementsAre(8, 7, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(peaks({4, 8, 1, gpipe}), ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(peaks({2, 4, 2, one_f_one_b_interleave}), ElementsAre(5, 3));
  EXPECT_THAT(peaks({4, 8, 2, one_f_one_b_interleave}), ElementsAre(11, 9, 7, 5));
  EXPECT_THAT(peaks({4, 4, 2, one_f_one_b_interleave}), ElementsAre(8, 8, 7, 5));
  EXPECT_THAT(peaks({4, 8, 4, one_f_one_b_interleave}), ElementsAre(19, 17, 15, 13));
  EXPECT_THAT(peaks({4, 10, 2, one_f_one_b_interleave}), ElementsAre(13, 11, 9, 7));
  EXPECT_THAT(peaks({2, 5, 2, one_f_one_b_interleave}), ElementsAre(6, 4));
  EXPECT_THAT(peaks({4, 8, 2, gpipe_interleave}), ElementsAre(16, 16, 16, 16));
}

// Every stage computes every micro-batch of every chunk once in either direction, forward first.
TEST(PipelineSchedule, NothingIsLeftOut) {
  for (const auto schedule : {PipelineSchedule::one_f_one_b_interleave, PipelineSchedule::gpipe_interleave}) {
    for (std::uint32_t stages = 2; stages <= 5; ++stages) {
      for (std::uint32_t micro = stages; micro <= 11; ++micro) {
        const PipelineShape shape{stages, micro, 3, schedule};
        for (std::uint32_t stage = 0; stage < stages; ++stage) {
          const std::vector<Cell> cells = cells_of_stage(shape, stage);
          ASSERT_EQ(cells.size(), std::size_t{2} * micro * 3);
          for (std::uint32_t chunk = 0; chunk < 3; ++chunk) {
            for (std::uint32_t m = 0; m < micro; ++m) {
              const auto forward = std::ranges::find(cells, Cell{Phase::forward, chunk, m});
              const auto backward = std::ranges::find(cells, Cell{Phase::backward, chunk, m});
              EXPECT_LT(forward, backward);
              EXPECT_NE(backward, cells.end());
            }
          }
        }
      }
    }
  }
}

TEST(PipelineSchedule, NamesAreReadAndWritten) {
  for (const char* name : {"1f1b", "gpipe", "1f1b-interleave", "gpipe-interleave"}) {
    EXPECT_EQ(name_of(parse_pipeline_schedule(name)), name);
  }
  EXPECT_THAT(test::refusal("option", [] { static_cast<void>(parse_pipeline_schedule("2f2b")); }),
              HasSubstr("1f1b, gpipe, 1f1b-interleave, gpipe-interleave"));
}

TEST(PipelineSchedule, ShapesThatCannotBe) {
  const auto refused = [](const PipelineShape& shape) {
    return test::refusal("pipeline", [&] { require_shape(shape); });
  };
  EXPECT_THAT(refused({4, 3, 2, PipelineSchedule::one_f_one_b_interleave}),
              HasSubstr("4 stages of 2 chunks need at least as many"));
  EXPECT_NO_THROW(require_shape({4, 3, 1, PipelineSchedule::one_f_one_b}));
  EXPECT_THAT(refused({4, 8, 2, PipelineSchedule::one_f_one_b}), HasSubstr("1f1b-interleave"));
  EXPECT_THAT(refused({4, 8, 1, PipelineSchedule::gpipe_interleave}), HasSubstr("2 or more chunks"));
  EXPECT_THAT(refused({1, 8, 2, PipelineSchedule::gpipe_interleave}), HasSubstr("--stages 2"));
  EXPECT_THAT(refused({0, 8, 1, PipelineSchedule::gpipe}), HasSubstr("at least 1 stage"));
  EXPECT_NO_THROW(require_shape({4, 4, 1, PipelineSchedule::gpipe}));
}

}  // namespace
}  // namespace hcclsim::hccl
