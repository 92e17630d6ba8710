#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/training/parallel_training.hpp"
#include "tests/support/training/sharded_training.hpp"

/// What some steps of training come to, to be compared with those of another layout.
namespace hcclsim::test {

using Tensors = std::vector<std::vector<float>>;

struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<double> accuracies;
  Tensors weights;

  bool operator==(const Trained&) const = default;
};

/// Some steps, whose reductions and replicas are checked.
inline Trained steps_of(hccl::Trainer& trainer, int steps = 3) {
  Trained result;
  for (int step = 0; step < steps; ++step) {
    const hccl::IterationFigures figures = trainer.step(true);
    EXPECT_LE(trainer.reduction_check().worst_ratio, 1);
    result.losses.push_back(figures.loss);
    result.norms.push_back(figures.gradient_norm);
    result.accuracies.push_back(figures.accuracy);
  }
  EXPECT_EQ(trainer.replica_check().differing_bits, 0);
  result.weights = weights_of(trainer);
  return result;
}

inline Trained train(const ParallelSetup& setup) { return steps_of(*make_trainer(setup)); }
inline Trained train(const ShardedTraining& training) { return steps_of(*make_trainer(training)); }

inline double largest_difference(const Tensors& one, const Tensors& other) {
  double largest = 0;
  EXPECT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].size(), other[i].size());
    for (std::size_t k = 0; k < one[i].size(); ++k) {
      largest = std::max(largest, std::abs(static_cast<double>(one[i][k]) - other[i][k]));
    }
  }
  return largest;
}

/// `equal_logits`: of rows whose greatest logit several classes have, `one` may count more as right, since it does not
/// know which of them is first on other ranks.
inline void expect_near(const Trained& one, const Trained& other, double tolerance, bool equal_logits = false) {
  for (std::size_t step = 0; step < one.losses.size(); ++step) {
    EXPECT_NEAR(one.losses[step], other.losses[step], tolerance * one.losses[step]);
    EXPECT_NEAR(one.norms[step], other.norms[step], tolerance * one.norms[step]);
    EXPECT_GE(one.accuracies[step], other.accuracies[step]);
    if (!equal_logits) {
      EXPECT_EQ(one.accuracies[step], other.accuracies[step]);
    }
  }
  EXPECT_LT(largest_difference(one.weights, other.weights), tolerance);
}

inline ParallelSetup perceptron_setup(std::uint32_t micro_batches) {
  ParallelSetup setup;
  setup.model = {.name = "mlp:16,12,12,12,12,12,12,12,8", .batch = 2};
  setup.shape.micro_batches = micro_batches;
  setup.options.data = "synthetic-classes:96";
  setup.options.learning_rate = device::LearningRate(0.05);
  return setup;
}

inline ParallelSetup transformer_setup(std::uint32_t micro_batches) {
  ParallelSetup setup;
  setup.shape.micro_batches = micro_batches;
  setup.options.data = "synthetic:96";
  setup.options.learning_rate = device::LearningRate(0.05);
  return setup;
}

inline ParallelSetup llama_setup(std::uint32_t micro_batches) {
  ParallelSetup setup = transformer_setup(micro_batches);
  setup.model.name = "llama2-7b";
  return setup;
}

}  // namespace hcclsim::test
