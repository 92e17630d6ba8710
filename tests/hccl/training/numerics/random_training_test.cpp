#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "hccl/parallel/plan/plan_walk.hpp"
#include "models/lowering/lower.hpp"
#include "tests/hccl/training/numerics/trained.hpp"
#include "tests/support/rank_walk.hpp"
#include "tests/support/training/random_trainings.hpp"
#include "tests/support/training/sharded_training.hpp"
#include "tests/support/training/wire_traffic.hpp"

/// Random small networks under random strategies train as on one device, send what is counted by hand, come to an end,
/// and undo their communication in the backward pass.
namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t trainings_of_a_test = 40;

using models::OperatorKind;

OperatorKind dual_in_words(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::all_gather:
      return OperatorKind::reduce_scatter;
    case OperatorKind::reduce_scatter:
      return OperatorKind::all_gather;
    default:
      return kind;
  }
}

/// Every collective of an operator whose input has a gradient has its dual in the backward pass: of the same group,
/// with as many numbers as the other has made.
void expect_duals(const ShardedGraph& stage, const models::Program& program) {
  const models::Graph& graph = stage.graph;
  const std::vector<bool> has_gradient = graph.needs_gradient();
  std::map<models::OperatorId, const models::CommunicationWork*> backward;
  std::vector<models::OperatorId> order;
  for (const models::Kernel& kernel : program.micro_batch()) {
    if (kernel.kind != models::KernelClass::communication || kernel.recomputed) continue;
    const models::Operator& op = graph.operators[kernel.op];
    if (!models::communicates(op.kind) || op.kind >= OperatorKind::send) continue;
    if (kernel.phase == models::Phase::backward) {
      EXPECT_TRUE(backward.emplace(kernel.op, kernel.communication.get()).second) << op.name;
      order.push_back(kernel.op);
    }
  }
  for (const models::Kernel& kernel : program.micro_batch()) {
    if (kernel.kind != models::KernelClass::communication || kernel.phase != models::Phase::forward) continue;
    const models::Operator& op = graph.operators[kernel.op];
    if (!models::communicates(op.kind) || op.kind >= OperatorKind::send) continue;
    const auto dual = backward.find(kernel.op);
    ASSERT_EQ(dual != backward.end(), has_gradient[op.inputs.front().op]) << op.name;
    if (dual == backward.end()) continue;
    EXPECT_EQ(dual->second->kind, dual_in_words(op.kind)) << op.name;
    EXPECT_EQ(dual->second->group.family, kernel.communication->group.family) << op.name;
    EXPECT_EQ(dual->second->elements, op.shape().elements()) << op.name;
    backward.erase(dual);
  }
  EXPECT_TRUE(backward.empty());
}

void expect_as_alone(std::uint32_t seed) {
  const test::ShardedTraining training = test::random_training(seed);
  SCOPED_TRACE("seed " + std::to_string(seed) + ": " + test::to_string(training));
  const std::vector<ShardedGraph> stages = test::stages_of(training, training.network);
  const Plan plan = test::plan_of(training, stages);
  static_cast<void>(walk(plan));  // comes to its end
  EXPECT_TRUE(test::RankWalk(plan).finishes());
  for (std::size_t stage = 0; stage < stages.size(); ++stage) expect_duals(stages[stage], *plan.roles[stage].program);
  if (training.recompute == "none") {
    const test::ExpectedBytes expected = test::expected_bytes(training);
    const Bytes sent = test::wire_bytes(plan);
    EXPECT_TRUE(sent >= expected.least && sent <= expected.most) << sent << " of " << expected.least;
  }
  test::expect_near(test::train(training), test::train(test::alone(training)), 5e-5, true);
}

class RandomTrainings : public testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomTrainings, TrainAsOneDevice) {
  for (std::uint32_t i = 0; i < trainings_of_a_test && !HasFailure(); ++i) {
    expect_as_alone(GetParam() * trainings_of_a_test + i);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTrainings, testing::Range(0U, 26U));

class RandomTrainingsAtLength : public testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomTrainingsAtLength, TrainAsOneDeviceAtLength) {
  for (std::uint32_t i = 0; i < trainings_of_a_test && !HasFailure(); ++i) {
    expect_as_alone((1000 + GetParam()) * trainings_of_a_test + i);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTrainingsAtLength, testing::Range(0U, 200U));

}  // namespace
}  // namespace hcclsim::hccl
