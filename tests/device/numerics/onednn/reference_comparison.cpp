#include "tests/device/numerics/onednn/reference_comparison.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "device/numerics/loops/dropout.hpp"
#include "tests/device/numerics/sample_net.hpp"

namespace hcclsim::device {

namespace {

std::function<double(double)> rounding(const ComputationOptions& options) {
  if (!options.round) return {};
  return [type = *options.round, overflow = options.overflow](double value) {
    auto rounded = static_cast<float>(value);
    round_in_place(type, overflow, {&rounded, 1});
    return static_cast<double>(rounded);
  };
}

}  // namespace

test::ReferenceOptions reference_options(const models::Graph& graph, const ComputationOptions& options,
                                         const StepInput& input) {
  return {.label_smoothing = options.label_smoothing,
          .loss_scale = input.loss_scale,
          .keeps =
              [&graph, input](models::OperatorId op, std::uint64_t element) {
                const models::Operator& drops = graph.operators[op];
                const bool scores = drops.kind == models::OperatorKind::attention;
                const std::uint64_t elements = scores ? attention_scores(drops) : drops.shape().elements();
                const std::uint64_t of_sample = elements / graph.batch();
                return Dropout(input.dropout_seed, op, drops.drop_rate)
                    .keeps(input.first_sample + element / of_sample, element % of_sample);
              },
          .round = rounding(options)};
}

void expect_as_reference(const models::Graph& graph, std::uint64_t seed, const ComputationOptions& options) {
  const StepInput input{.loss_scale = 4, .dropout_seed = 3 * seed, .first_sample = 5 * seed};
  const std::vector<test::Tensor> parameters = test::initial_parameters(graph, seed);
  const SampleNet net(graph, parameters, options);
  const test::ReferenceBatch batch = test::oracle_batch(graph, seed, 0);
  Workspace workspace(net.computation);
  std::vector<float> gradients = net.flat();
  const StepOutput output = workspace.step(net.weights, batch_of(graph, batch), input, gradients);

  const test::ReferenceStep reference =
      test::reference_step(graph, parameters, batch, reference_options(graph, options, input));
  EXPECT_NEAR(output.loss, reference.loss, 5e-6 * reference.loss);
  EXPECT_EQ(output.correct, reference.correct);
  double largest = 0;
  for (const test::Tensor& gradient : reference.gradients) {
    for (const double value : gradient) largest = std::max(largest, std::abs(value));
  }
  for (std::size_t i = 0; i < net.computation.parameters().size(); ++i) {
    const ParameterSlot& slot = net.computation.parameters()[i];
    const test::Tensor& expected = reference.gradients[slot.parameter];
    const test::Tensor plain = net.plain(i, gradients);
    double difference = 0;
    double norm = 0;
    for (std::size_t k = 0; k < plain.size(); ++k) {
      difference = std::hypot(difference, plain[k] - expected[k]);
      norm = std::hypot(norm, expected[k]);
    }
    // Some gradients are 0 but for rounding, as that of a bias before a norm.
    EXPECT_LE(difference, 1e-4 * norm + 2e-6 * largest) << slot.name << " of " << graph.title;
  }
}

}  // namespace hcclsim::device
