#include "hccl/parallel/pipeline/message_order.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/refusal.hpp"
#include "tests/support/training/pipelines.hpp"

namespace hcclsim::hccl {
namespace {

using models::OperatorKind;
using models::Phase;

/// "RF0" receives the activation of micro-batch 0, "SB1" sends the gradient of micro-batch 1.
std::vector<std::string> written(const PipelineShape& shape) {
  const std::vector<StageProgram> stages = test::timed_stages(shape, 1, 1, 2);
  std::vector<const models::Program*> programs;
  for (const StageProgram& stage : stages) programs.push_back(stage.program.get());
  std::vector<std::string> lines;
  const auto order = message_order(programs, shape, 1);
  for (std::size_t stage = 0; stage < order.size(); ++stage) {
    std::string line;
    for (const MessageTurn& turn : order[stage]) {
      const models::Kernel& kernel = programs[stage]->kernels[turn.kernel];
      line +=
          fmt::format("{}{}{}{}", line.empty() ? "" : " ", kernel.communication->kind == OperatorKind::send ? 'S' : 'R',
                      kernel.phase == Phase::forward ? 'F' : 'B', turn.micro_batch);
    }
    lines.push_back(line);
  }
  return lines;
}

// Warm-up: an activation is sent before the next one is received. Then in turn: receive the gradient, send the last
// activation, send the gradient on, receive the next activation. At the end a gradient is sent before the next comes.
TEST(MessageOrder, OneForwardOneBackward) {
  const std::vector<std::string> order = written({3, 4, 1, PipelineSchedule::one_f_one_b});
  ASSERT_EQ(order.size(), 3U);
  EXPECT_EQ(order[0], "SF0 SF1 RB0 SF2 RB1 SF3 RB2 RB3");
  EXPECT_EQ(order[1], "RF0 SF0 RF1 RB0 SF1 SB0 RF2 RB1 SF2 SB1 RF3 RB2 SF3 SB2 RB3 SB3");
  EXPECT_EQ(order[2], "RF0 SB0 RF1 SB1 RF2 SB2 RF3 SB3");
}

TEST(MessageOrder, GpipeSendsFromEvenStagesFirst) {
  const std::vector<std::string> order = written({3, 3, 1, PipelineSchedule::gpipe});
  EXPECT_EQ(order[0], "SF0 SF1 SF2 RB0 RB1 RB2");
  EXPECT_EQ(order[1], "RF0 RF1 SF0 RF2 SF1 SF2 RB0 RB1 SB0 RB2 SB1 SB2");
}

TEST(MessageOrder, ASendThatNobodyReceives) {
  const PipelineShape shape{2, 2, 1, PipelineSchedule::one_f_one_b};
  const std::vector<StageProgram> stages = test::timed_stages(shape, 1, 1, 2);
  const std::vector<const models::Program*> twice{stages[0].program.get(), stages[0].program.get()};
  EXPECT_THAT(test::refusal("pipeline", [&] { static_cast<void>(message_order(twice, shape, 1)); }),
              testing::HasSubstr("does not receive it"));
}

}  // namespace
}  // namespace hcclsim::hccl
