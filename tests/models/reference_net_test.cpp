#include "tests/support/training/reference_net.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/initial_weights.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training/net_oracle.hpp"

/// The reference network itself against PyTorch in double precision; the oracle has 12 digits.
namespace hcclsim::test {
namespace {

struct Case {
  std::string oracle;
  std::string model;
};

class ReferenceNet : public testing::TestWithParam<Case> {};

TEST_P(ReferenceNet, AgreesWithTheOracle) {
  const NetOracle oracle = net_oracle(GetParam().oracle);
  const models::Graph graph = models::make_model({.name = GetParam().model, .batch = oracle.batch});
  ASSERT_EQ(graph.parameters.size(), oracle.gradients.size());
  const ReferenceStep step =
      reference_step(graph, initial_parameters(graph, oracle.seed), oracle_batch(graph, oracle.seed, 0));
  EXPECT_NEAR(step.loss, oracle.loss, 1e-11 * oracle.loss);
  for (std::size_t p = 0; p < oracle.gradients.size(); ++p) {
    EXPECT_EQ(graph.parameters[p].name, oracle.gradients[p].name);
    const OracleDeviation difference = deviation(oracle.gradients[p], step.gradients[p]);
    EXPECT_LT(difference.norm, 1e-11) << oracle.gradients[p].name;
    EXPECT_LT(difference.samples, 1e-11) << oracle.gradients[p].name;
  }
}

TEST_P(ReferenceNet, AgreesWithTheMeanOfFourReplicas) {
  const NetOracle oracle = net_oracle(GetParam().oracle);
  const models::Graph graph = models::make_model({.name = GetParam().model, .batch = oracle.batch});
  const auto replicas = oracle.replica_losses.size();
  std::vector<Tensor> mean;
  for (const models::Parameter& parameter : graph.parameters) mean.emplace_back(parameter.elements, 0.0);
  for (std::size_t r = 0; r < replicas; ++r) {
    const ReferenceStep step = reference_step(graph, initial_parameters(graph, oracle.seed),
                                              oracle_batch(graph, oracle.seed, r * oracle.batch));
    EXPECT_NEAR(step.loss, oracle.replica_losses[r], 1e-11 * oracle.loss) << "replica " << r;
    for (std::size_t p = 0; p < mean.size(); ++p) {
      for (std::size_t i = 0; i < mean[p].size(); ++i) {
        mean[p][i] += step.gradients[p][i] / static_cast<double>(replicas);
      }
    }
  }
  for (std::size_t p = 0; p < mean.size(); ++p) {
    const OracleDeviation difference = deviation(oracle.mean_gradients[p], mean[p]);
    EXPECT_LT(difference.norm, 1e-11) << oracle.mean_gradients[p].name;
    EXPECT_LT(difference.samples, 1e-11) << oracle.mean_gradients[p].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceNet,
                         testing::Values(Case{"mlp", "mlp:64,128,96,10"}, Case{"lenet", "lenet"},
                                         Case{"smallres", "smallres"}, Case{"tinygpt", "tinygpt"}),
                         [](const auto& info) { return info.param.oracle; });

}  // namespace
}  // namespace hcclsim::test
