// Optimizers against an independent computation (tests/data/oracle/optimizer_oracle.json: weights after five steps) and
// against the rules written out for one element.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/counter_random.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "tests/support/json_file.hpp"

namespace hcclsim::device {
namespace {

using models::Optimizer;
/// The tensors of the oracle: a matrix, a vector, a convolution's weight.
std::vector<ParameterSlot> oracle_slots() {
  return {{"matrix", 0, 0, 32, false}, {"vector", 1, 32, 8, true}, {"convolution", 2, 40, 135, false}};
}

/// Tensor i holds the stream `stream` + i of the oracle's generator.
std::vector<float> oracle_values(std::uint64_t seed, std::uint64_t stream, double scale) {
  std::vector<float> values;
  for (const ParameterSlot& slot : oracle_slots()) {
    for (std::uint64_t k = 0; k < slot.elements; ++k) {
      values.push_back(static_cast<float>(scale * counter_uniform(seed, stream + slot.parameter, k)));
    }
  }
  return values;
}

struct OracleCase {
  std::string name;
  OptimizerSettings settings;
  double learning_rate;
};

std::vector<OracleCase> oracle_cases() {
  return {{"sgd", {.rule = Optimizer::sgd}, 0.1},
          {"sgd_momentum_wd", {.rule = Optimizer::momentum, .weight_decay = 0.01}, 0.1},
          {"sgd_nesterov", {.rule = Optimizer::nesterov, .weight_decay = 0.01}, 0.1},
          {"adam", {.rule = Optimizer::adam, .weight_decay = 0.01}, 0.01},
          {"adamw", {.rule = Optimizer::adamw, .weight_decay = 0.01}, 0.01},
          {"lars", {.rule = Optimizer::lars, .weight_decay = 0.01}, 0.1},
          {"lamb", {.rule = Optimizer::lamb, .weight_decay = 0.01}, 0.01}};
}

class OptimizerOracle : public testing::TestWithParam<OracleCase> {};

TEST_P(OptimizerOracle, WeightsAfterFiveSteps) {
  const Json oracle = test::read_json("oracle/optimizer_oracle.json");
  std::vector<double> expected;
  for (const Json& one : oracle["cases"]) {
    if (one["name"] != GetParam().name) continue;
    for (const Json& tensor : one["weights"]) {
      for (const Json& weight : tensor) expected.push_back(weight.get<double>());
    }
  }
  WorkerPool workers(2);
  OptimizerState optimizer(GetParam().settings, oracle_slots());
  std::vector<float> weights = oracle_values(11, 0, 1);
  ASSERT_EQ(expected.size(), weights.size());
  for (std::uint64_t step = 0; step < 5; ++step) {
    std::vector<float> gradients = oracle_values(12, 100 * step, 0.1);
    for (float& gradient : gradients) gradient *= 1024;  // as a loss scale would leave them
    optimizer.step(workers, weights, gradients, 1.0F / 1024, GetParam().learning_rate);
  }
  EXPECT_EQ(optimizer.steps(), 5U);
  for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected[i], 1e-6) << "element " << i;
}

INSTANTIATE_TEST_SUITE_P(Rules, OptimizerOracle, testing::ValuesIn(oracle_cases()),
                         [](const auto& one) { return one.param.name; });

/// A large tensor over several blocks, a small one, and one whose end is inside a vector register.
std::vector<ParameterSlot> large_slots() {
  return {{"a", 2, 0, 200'003, false}, {"b", 1, 200'003, 5, true}, {"c", 0, 200'008, 65'537, false}};
}
constexpr std::size_t large_elements = 265'545;

std::vector<float> random_values(std::uint64_t stream, double scale) {
  std::vector<float> values(large_elements);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(scale * counter_uniform(5, stream, i));
  }
  return values;
}

bool same_bits(std::span<const float> left, std::span<const float> right) {
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size_bytes()) == 0;
}

/// The large tensors, some steps on.
struct Training {
  explicit Training(const OptimizerSettings& settings) : optimizer(settings, large_slots()) {}

  void step(WorkerPool& workers, std::uint64_t number) {
    optimizer.step(workers, weights, random_values(10 + number, 0.1), 0.25F, 0.01);
  }

  OptimizerState optimizer;
  std::vector<float> weights = random_values(1, 1);
};

bool same_bits(Training& left, Training& right) {
  bool same = same_bits(left.weights, right.weights);
  for (std::size_t i = 0; i < left.optimizer.tensors().size(); ++i) {
    same = same && same_bits(left.optimizer.tensors()[i], right.optimizer.tensors()[i]);
  }
  return same;
}

class EveryRule : public testing::TestWithParam<Optimizer> {
 protected:
  OptimizerSettings settings_{.rule = GetParam(), .weight_decay = 0.01};
};

TEST_P(EveryRule, BitsDoNotDependOnTheNumberOfWorkers) {
  WorkerPool one(1);
  Training alone(settings_);
  for (std::uint64_t step = 0; step < 3; ++step) alone.step(one, step);
  for (unsigned count = 2; count <= 4; ++count) {
    WorkerPool several(count);
    Training together(settings_);
    for (std::uint64_t step = 0; step < 3; ++step) together.step(several, step);
    EXPECT_TRUE(same_bits(alone, together)) << count << " workers";
  }
}

TEST_P(EveryRule, ACopyGoesOnByItself) {
  WorkerPool workers(2);
  Training original(settings_);
  original.step(workers, 0);
  Training fork = original;
  fork.step(workers, 7);
  Training other(settings_);
  other.step(workers, 0);
  EXPECT_TRUE(same_bits(original, other));
  other.step(workers, 7);
  EXPECT_TRUE(same_bits(fork, other));
  EXPECT_FALSE(same_bits(fork, original));
}

TEST_P(EveryRule, GoesOnFromSavedState) {
  WorkerPool workers(2);
  Training run(settings_);
  for (std::uint64_t step = 0; step < 3; ++step) run.step(workers, step);
  Training resumed(settings_);
  resumed.weights = run.weights;
  const std::vector<std::span<float>> saved = run.optimizer.tensors();
  const std::vector<std::span<float>> restored = resumed.optimizer.tensors();
  ASSERT_EQ(saved.size(), restored.size());
  Bytes bytes = 0;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    std::ranges::copy(saved[i], restored[i].begin());
    bytes += saved[i].size_bytes();
  }
  EXPECT_EQ(OptimizerState::bytes(settings_, large_elements), bytes);
  resumed.optimizer.restore_steps(run.optimizer.steps());
  run.step(workers, 3);
  resumed.step(workers, 3);
  EXPECT_TRUE(same_bits(run, resumed));
}

TEST_P(EveryRule, DecaysNormParametersOnlyIfTold) {
  WorkerPool workers(1);
  const auto vector_after = [&](double decay, bool decay_norm_parameters) {
    OptimizerSettings settings{.rule = GetParam(), .weight_decay = decay};
    settings.decay_norm_parameters = decay_norm_parameters;
    Training run(settings);
    run.step(workers, 0);
    run.step(workers, 1);
    return run.weights;
  };
  const std::vector<float> none = vector_after(0, true);
  const std::vector<float> all = vector_after(0.5, true);
  const std::vector<float> spared = vector_after(0.5, false);
  const auto part = [](const std::vector<float>& weights, std::size_t slot) {
    return std::span(weights).subspan(large_slots()[slot].offset, large_slots()[slot].elements);
  };
  EXPECT_TRUE(same_bits(part(spared, 1), part(none, 1)));
  EXPECT_EQ(same_bits(part(all, 1), part(none, 1)), GetParam() == Optimizer::lars);
  for (const std::size_t matrix : {0, 2}) {
    SCOPED_TRACE(fmt::format("slot {}", matrix));
    EXPECT_TRUE(same_bits(part(spared, matrix), part(all, matrix)));
    EXPECT_FALSE(same_bits(part(spared, matrix), part(none, matrix)));
  }
}

/// Weights, velocities and moments of zeros, but a gradient: the ratio of weight to update must not hold them at zero.
TEST_P(EveryRule, LeavesZeroWeights) {
  WorkerPool workers(1);
  Training run(settings_);
  run.weights.assign(large_elements, 0);
  run.step(workers, 0);
  const std::vector<float> gradients = random_values(10, 0.1);
  for (std::size_t i = 0; i < large_elements; ++i) {
    ASSERT_TRUE(std::isfinite(run.weights[i])) << i;
    ASSERT_EQ(std::signbit(run.weights[i]), !std::signbit(gradients[i])) << i;
  }
}

TEST_P(EveryRule, ZeroGradientsAreFinite) {
  WorkerPool workers(1);
  OptimizerSettings settings{.rule = GetParam()};
  OptimizerState optimizer(settings, oracle_slots());
  const std::vector<float> before = oracle_values(11, 0, 1);
  std::vector<float> weights = before;
  optimizer.step(workers, weights, std::vector<float>(weights.size()), 1, 0.1);
  EXPECT_TRUE(same_bits(weights, before));
}

INSTANTIATE_TEST_SUITE_P(Rules, EveryRule,
                         testing::Values(Optimizer::sgd, Optimizer::momentum, Optimizer::nesterov, Optimizer::adam,
                                         Optimizer::adamw, Optimizer::lars, Optimizer::lamb),
                         [](const auto& one) { return std::string(models::name_of(one.param)); });

std::string message_for(const OptimizerSettings& settings) {
  try {
    const OptimizerState optimizer(settings, oracle_slots());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "option");
    return error.what();
  }
  return "";
}

TEST(OptimizerSettings, RefusesWhatIsOutOfRange) {
  const double nan = std::nan("");
  EXPECT_EQ(message_for({}), "");
  EXPECT_EQ(message_for({.momentum = 1}), "momentum is 1, must be from 0 to below 1");
  EXPECT_EQ(message_for({.beta1 = -0.1}), "beta1 is -0.1, must be from 0 to below 1");
  EXPECT_EQ(message_for({.beta2 = nan}), "beta2 is nan, must be from 0 to below 1");
  EXPECT_EQ(message_for({.epsilon = 0}), "epsilon is 0, must be from 1e-37 to 1");
  EXPECT_EQ(message_for({.weight_decay = -1}), "weight decay is -1, must be 0 or more");
  EXPECT_EQ(message_for({.trust_coefficient = 0}), "trust coefficient is 0, must be more than 0");
}

TEST(OptimizerState, RefusesBuffersOfOtherLengthAndGaps) {
  WorkerPool workers(1);
  OptimizerState optimizer({}, oracle_slots());
  std::vector<float> weights(174);
  EXPECT_THROW(optimizer.step(workers, weights, weights, 1, 0.1), Error);
  const std::vector<ParameterSlot> gap{{"a", 0, 0, 4, false}, {"b", 1, 5, 4, false}};
  EXPECT_THROW(OptimizerState({}, gap), Error);
}

}  // namespace
}  // namespace hcclsim::device
