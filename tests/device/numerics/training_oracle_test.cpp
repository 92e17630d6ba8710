#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "device/numerics/loops/optimizer.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/device/numerics/sample_net.hpp"

/// Ten steps of SGD, and the mean gradient of four replicas, against PyTorch in double precision.
namespace hcclsim::device {
namespace {

class TrainingOracle : public testing::TestWithParam<std::string> {
 protected:
  test::NetOracle oracle_ = test::net_oracle(GetParam());
  models::Graph graph_ =
      models::make_model({.name = oracle_.model == "mlp" ? "mlp:64,128,96,10" : oracle_.model, .batch = oracle_.batch});
  SampleNet net_{graph_, oracle_.seed};
  Workspace workspace_{net_.computation};
  std::vector<float> gradients_ = net_.flat();
  WorkerPool pool_{2};
};

TEST_P(TrainingOracle, TenSteps) {
  const OptimizerSettings settings{
      .rule = models::Optimizer::momentum, .momentum = oracle_.momentum, .weight_decay = oracle_.weight_decay};
  OptimizerState optimizer(settings, net_.computation.parameters());
  const models::Batch batch = batch_of(graph_, test::oracle_batch(graph_, oracle_.seed, 0));
  ASSERT_EQ(oracle_.sgd_losses.size(), 10);
  for (std::size_t t = 0; t < oracle_.sgd_losses.size(); ++t) {
    const StepOutput output = workspace_.step(net_.weights, batch, {}, gradients_);
    const double tolerance = t == 0 ? 5e-6 : 1e-5 * static_cast<double>(t + 1);  // errors grow from step to step
    EXPECT_NEAR(output.loss, oracle_.sgd_losses[t], tolerance * oracle_.sgd_losses[t]) << "step " << t;
    optimizer.step(pool_, net_.weights.values(), gradients_, 1, oracle_.learning_rate);
    net_.weights.prepare(pool_);
  }
  for (std::size_t i = 0; i < net_.computation.parameters().size(); ++i) {
    const ParameterSlot& slot = net_.computation.parameters()[i];
    double squares = 0;
    for (const double value : net_.plain(i, net_.weights.values())) squares += value * value;
    const double expected = oracle_.sgd_norms[slot.parameter];
    EXPECT_NEAR(std::sqrt(squares), expected, 1e-4 * expected) << slot.name;
  }
}

TEST_P(TrainingOracle, MeanOfFourReplicas) {
  const std::size_t replicas = oracle_.replica_losses.size();
  ASSERT_EQ(replicas, 4);
  std::vector<float> mean = net_.flat();
  for (std::size_t r = 0; r < replicas; ++r) {
    SCOPED_TRACE(fmt::format("replica {}", r));
    const models::Batch batch = batch_of(graph_, test::oracle_batch(graph_, oracle_.seed, r * oracle_.batch));
    EXPECT_NEAR(workspace_.step(net_.weights, batch, {}, gradients_).loss, oracle_.replica_losses[r],
                5e-6 * oracle_.replica_losses[r]);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += gradients_[i] / static_cast<float>(replicas);
  }
  for (std::size_t i = 0; i < net_.computation.parameters().size(); ++i) {
    const ParameterSlot& slot = net_.computation.parameters()[i];
    const test::OracleDeviation difference =
        test::deviation(oracle_.mean_gradients[slot.parameter], net_.plain(i, mean));
    EXPECT_LT(difference.norm, 1e-4) << slot.name;
    EXPECT_LT(difference.samples, 1e-4) << slot.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TrainingOracle, testing::Values("mlp", "lenet", "smallres", "tinygpt"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hcclsim::device
