#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/device/numerics_net.hpp"

/// Losses and gradients against PyTorch in fp64 (tests/data/oracle/net_oracle.json).
namespace hcclsim::device {
namespace {

nlohmann::json oracle_case(const std::string& model) {
  std::ifstream file(HCCLSIM_TEST_DATA "/oracle/net_oracle.json");
  const nlohmann::json oracle = nlohmann::json::parse(file);
  for (const nlohmann::json& one : oracle["cases"]) {
    if (one["model"] == model) return one;
  }
  ADD_FAILURE() << "no oracle for " << model;
  return {};
}

models::Graph oracle_graph(const nlohmann::json& oracle) {
  const std::string model = oracle["model"];
  models::ModelOptions options{.name = model == "mlp" ? "mlp:64,128,96,10" : model, .batch = oracle["batch"]};
  if (model != "mlp") options.input = oracle["hw"];
  return models::make_model(options);
}

/// Row of the oracle: name, shape, norm, sum, largest magnitude, sampled indices, their values.
void expect_gradient(const std::vector<float>& gradient, const nlohmann::json& row) {
  SCOPED_TRACE(row[0].get<std::string>());
  double squares = 0;
  double sum = 0;
  for (const float value : gradient) {
    squares += double{value} * value;
    sum += value;
  }
  const double norm = row[2];
  const double largest = row[4];
  EXPECT_NEAR(std::sqrt(squares), norm, 1e-4 * norm);
  EXPECT_NEAR(sum, row[3].get<double>(), 1e-4 * norm * std::sqrt(static_cast<double>(gradient.size())));
  for (std::size_t k = 0; k < row[5].size(); ++k) {
    EXPECT_NEAR(gradient[row[5][k]], row[6][k].get<double>(), 1e-4 * largest) << "element " << row[5][k];
  }
}

class OracleNet : public testing::TestWithParam<std::string> {};

TEST_P(OracleNet, loss_and_all_gradients) {
  const nlohmann::json oracle = oracle_case(GetParam());
  const models::Graph graph = oracle_graph(oracle);
  const std::uint64_t seed = oracle["seed"];
  const Net net(graph, seed);
  Workspace workspace(net.program);
  std::vector<float> gradients = net.flat();
  const bool coarse = GetParam().starts_with("resnet");
  const StepOutput output = workspace.step(net.weights, made_batch(graph, seed, 0, coarse), {}, gradients);
  EXPECT_NEAR(output.loss, oracle["loss"].get<double>(), 5e-6 * oracle["loss"].get<double>());
  ASSERT_EQ(net.program.parameters().size(), oracle["grads"].size());
  for (std::size_t i = 0; i < net.program.parameters().size(); ++i) {
    const nlohmann::json& row = oracle["grads"][net.program.parameters()[i].parameter];
    ASSERT_EQ(net.program.parameters()[i].name, row[0]);
    expect_gradient(net.plain(i, gradients), row);
  }
}

INSTANTIATE_TEST_SUITE_P(, OracleNet, testing::Values("mlp", "lenet", "smallres", "resnet18", "resnet50"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hcclsim::device
