#include <gtest/gtest.h>

#include <string>

#include "models/zoo/zoo.hpp"
#include "tests/device/numerics/sample_net.hpp"

/// Losses and gradients of whole networks against PyTorch in double precision (tests/support/training/net_oracle.hpp).
namespace hcclsim::device {
namespace {

models::Graph oracle_graph(const test::NetOracle& oracle) {
  models::ModelOptions options{.name = oracle.model == "mlp" ? "mlp:64,128,96,10" : oracle.model,
                               .batch = oracle.batch};
  if (oracle.pixels > 1) options.input = oracle.pixels;
  return models::make_model(options);
}

class ProgramOracle : public testing::TestWithParam<std::string> {};

TEST_P(ProgramOracle, LossAndAllGradients) {
  const test::NetOracle oracle = test::net_oracle(GetParam());
  const models::Graph graph = oracle_graph(oracle);
  const SampleNet net(graph, oracle.seed);
  Workspace workspace(net.computation);
  std::vector<float> gradients = net.flat();
  const bool coarse = GetParam().starts_with("resnet");
  const models::Batch batch = batch_of(graph, test::oracle_batch(graph, oracle.seed, 0, coarse));
  const StepOutput output = workspace.step(net.weights, batch, {}, gradients);
  EXPECT_NEAR(output.loss, oracle.loss, 5e-6 * oracle.loss);
  ASSERT_EQ(net.computation.parameters().size(), oracle.gradients.size());
  for (std::size_t i = 0; i < net.computation.parameters().size(); ++i) {
    const ParameterSlot& slot = net.computation.parameters()[i];
    const test::OracleGradient& expected = oracle.gradients[slot.parameter];
    ASSERT_EQ(slot.name, expected.name);
    const test::OracleDeviation difference = test::deviation(expected, net.plain(i, gradients));
    EXPECT_LT(difference.norm, 1e-4) << slot.name;
    EXPECT_LT(difference.samples, 1e-4) << slot.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ProgramOracle,
                         testing::Values("mlp", "lenet", "smallres", "tinygpt", "resnet18", "resnet50"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hcclsim::device
