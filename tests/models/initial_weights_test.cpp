// Initial weights against single values of an independent program, and against the oracle's loss of a network.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "base/counter_random.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "models/initial_weights.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/json_file.hpp"

namespace hcclsim::models {
namespace {

Json oracle() { return test::read_json("oracle/net_oracle.json"); }

std::vector<float> weights_of(const Graph& graph, std::uint32_t parameter, std::uint64_t seed) {
  std::vector<float> weights(graph.parameters.at(parameter).elements);
  initial_weights(graph, parameter, seed, weights);
  return weights;
}

TEST(CounterRandom, IsTheGeneratorOfTheOracle) {
  const Json test = oracle()["generator_test"];
  for (const auto& [key, value] : test["bits_hex"].items()) {
    std::istringstream numbers(key);
    std::uint64_t seed = 0;
    std::uint64_t stream = 0;
    std::uint64_t index = 0;
    char comma = 0;
    ASSERT_TRUE(numbers >> seed >> comma >> stream >> comma >> index) << key;
    EXPECT_EQ(counter_bits(seed, stream, index), std::strtoull(value.get<std::string>().c_str(), nullptr, 16)) << key;
  }
  for (std::size_t i = 0; i < test["u_1_0"].size(); ++i) {
    EXPECT_EQ(counter_uniform(1, 0, i), test["u_1_0"][i].get<double>()) << i;
  }
}

struct Expected {
  const char* model;
  const char* parameter;
  float first;
  float last;
};

// First and last element at seed 7, bit for bit: computed with NumPy in fp64 and rounded to fp32.
TEST(InitialWeights, EveryKindOfParameter) {
  const std::vector<Expected> expected{
      {"lenet", "conv1.weight", 0x1.b706dcp-4F, -0x1.3c3e6cp-2F},
      {"lenet", "conv1.bias", -0x1.97ec1ap-6F, 0x1.6601bp-3F},
      {"lenet", "conv2.weight", 0x1.6b98ccp-9F, 0x1.6f1336p-3F},
      {"lenet", "fc1.weight", 0x1.156d0ap-4F, 0x1.a0da12p-4F},
      {"lenet", "fc3.bias", 0x1.0a3154p-4F, -0x1.968922p-4F},
      {"tinygpt", "wte.weight", 0x1.c0147p-3F, -0x1.f54aecp-1F},
      {"tinygpt", "wpe.weight", -0x1.fde72p-4F, 0x1.b477cp-5F},
      {"tinygpt", "ln_1.weight", 0x1.00e34p+0F, 0x1.b25854p-1F},
      {"tinygpt", "ln_1.bias", 0x1.67c08cp-6F, -0x1.4a6574p-5F},
      {"tinygpt", "c_attn.weight", 0x1.5ac84ep-3F, 0x1.357eeep-4F},
      {"tinygpt", "c_attn.bias", 0x1.6edacp-7F, -0x1.1646c8p-5F},
      {"resnet18", "layer1.0.bn2.weight", 0x1.110a4ep-3F, 0x1.092922p-3F},
  };
  for (const Expected& row : expected) {
    SCOPED_TRACE(row.parameter);
    const Graph graph = make_model({.name = row.model});
    std::uint32_t parameter = 0;
    while (graph.parameters.at(parameter).name != row.parameter) ++parameter;
    const std::vector<float> weights = weights_of(graph, parameter, 7);
    EXPECT_EQ(weights.front(), row.first);
    EXPECT_EQ(weights.back(), row.last);
  }
}

TEST(InitialWeights, AnySliceAlone) {
  const Graph graph = make_model({.name = "smallres"});
  const std::vector<float> whole = weights_of(graph, 3, 1);
  std::vector<float> slice(100);
  initial_weights(graph, 3, 1, slice, 1500);
  EXPECT_TRUE(std::equal(slice.begin(), slice.end(), whole.begin() + 1500));
  EXPECT_THROW(initial_weights(graph, 3, 1, slice, whole.size() - 99), Error);
  EXPECT_THROW(initial_weights(graph, 20, 1, slice), Error);
}

// The multi-layer perceptron of the oracle, forward in fp64: its loss needs every weight and bias.
TEST(InitialWeights, GiveTheLossOfTheOracle) {
  const Json test = oracle()["cases"][0];
  ASSERT_EQ(test["model"], "mlp");
  const Graph graph = make_model({.name = "mlp:64,128,96,10", .batch = 8});
  ASSERT_EQ(graph.parameters.size(), test["grads"].size());
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    EXPECT_EQ(graph.parameters[i].name, test["grads"][i][0].get<std::string>());
  }
  double loss = 0;
  for (std::uint64_t sample = 0; sample < 8; ++sample) {
    std::vector<double> x(64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = counter_uniform(1, 1'000'000 + sample, i);
    for (std::uint32_t layer = 0; layer < 3; ++layer) {
      const std::vector<float> weight = weights_of(graph, 2 * layer, 1);
      const std::vector<float> bias = weights_of(graph, 2 * layer + 1, 1);
      std::vector<double> y(bias.begin(), bias.end());
      for (std::size_t row = 0; row < y.size(); ++row) {
        for (std::size_t i = 0; i < x.size(); ++i) y[row] += double{weight[row * x.size() + i]} * x[i];
        if (layer < 2) y[row] = std::max(y[row], 0.0);
      }
      x = y;
    }
    double sum = 0;
    for (const double logit : x) sum += std::exp(logit);
    loss += (std::log(sum) - x[test["labels"][sample].get<std::size_t>()]) / 8;
  }
  EXPECT_NEAR(loss, test["loss"].get<double>(), 1e-10);
}

}  // namespace
}  // namespace hcclsim::models
