#include <gtest/gtest.h>

#include <unistd.h>
#include <cmath>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "hccl/training/numerics/compressed_reduction.hpp"
#include "hccl/training/numerics/trainer.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/training/training.hpp"

/// Training whose gradients are reduced by compression hooks along real schedules.
namespace hcclsim::hccl {
namespace {

using test::make_trainer;
using test::TrainingSetup;

TrainingSetup setup_of(const std::string& compress, const std::string& model = "mlp:64,128,96,10", Rank npus = 4) {
  TrainingSetup setup{.model = model, .batch = 8, .npus = npus, .last_indices = {1}, .compress = compress};
  setup.options.data = "synthetic:32";
  setup.options.workers = 2;
  return setup;
}

class CompressedTrainer : public testing::TestWithParam<std::tuple<std::string, std::string, DataType>> {
 protected:
  static TrainingSetup setup() {
    const auto& [compress, model, wire] = GetParam();
    TrainingSetup made = setup_of(compress, model, model == "lenet" ? 3 : 4);
    made.wire = wire;
    return made;
  }
};

/// All replicas hold the same bits after every step, and each step says how far its gradient is from the mean.
TEST_P(CompressedTrainer, ReplicasStayTheSame) {
  const auto trainer = make_trainer(setup());
  for (int step = 0; step < 5; ++step) {
    const bool plain = !trainer->compression()->compresses();
    const IterationFigures figures = trainer->step(false);
    EXPECT_EQ(trainer->replica_check().differing_bits, 0U);
    EXPECT_TRUE(std::isfinite(figures.loss));
    ASSERT_TRUE(figures.compression_error.has_value());
    if (plain) {
      EXPECT_LT(*figures.compression_error, 1e-2);
    }
  }
  EXPECT_EQ(trainer->stage(0).store().variants(), 1U);
}

/// A run that is saved and goes on has the bits of one that was not, whichever step it is saved behind.
TEST_P(CompressedTrainer, GoesOnBitwiseFromACheckpoint) {
  const std::string path = testing::TempDir() + "/compressed_" + std::to_string(::getpid()) + ".ckpt";
  for (const int saved_after : {1, 3}) {
    const auto whole = make_trainer(setup());
    for (int step = 0; step < saved_after; ++step) whole->step(false);
    whole->save(path);
    const auto resumed = make_trainer(setup());
    resumed->load(path);
    for (int step = 0; step < 3; ++step) {
      const IterationFigures one = whole->step(false);
      const IterationFigures other = resumed->step(false);
      EXPECT_EQ(one.loss, other.loss);
      EXPECT_EQ(one.compression_error, other.compression_error);
    }
    EXPECT_EQ(test::weights_of(*whole, 0), test::weights_of(*resumed, 0));
    EXPECT_EQ(whole->compression()->statistics().after, resumed->compression()->statistics().after);
  }
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Hooks, CompressedTrainer,
                         testing::Combine(testing::Values("batched-powersgd:start=2", "powersgd:start=2,rank=3",
                                                          "powersgd:start=2,rank=2,warm-start=off", "fp16",
                                                          "topk:ratio=0.1"),
                                          testing::Values("mlp:64,128,96,10", "lenet"),
                                          testing::Values(DataType::fp32, DataType::fp16)));

/// Everything is sent: the mean of the plain reduction, but for rounding.
TEST(CompressedTraining, TopKOfAllIsPlain) {
  const auto all = make_trainer(setup_of("topk:ratio=1"));
  const auto plain = make_trainer(setup_of(""));
  for (int step = 0; step < 5; ++step) {
    const IterationFigures one = all->step(false);
    const IterationFigures other = plain->step(false);
    EXPECT_NEAR(one.loss, other.loss, 1e-6 * other.loss);
    EXPECT_NEAR(one.gradient_norm, other.gradient_norm, 1e-5 * other.gradient_norm);
    EXPECT_LT(*one.compression_error, 1e-6);
  }
}

/// Steps before `start` are those of the plain reduction: W is a power of two, so that dividing first loses nothing.
TEST(CompressedTraining, ErrorOfGradientsThatAreNoneIsNone) {
  const double none = std::nan("");
  EXPECT_TRUE(std::isnan((CompressionError{.difference = none, .mean = none}.relative())));
  EXPECT_EQ((CompressionError{.difference = 4, .mean = 1}.relative()), 2);
  EXPECT_EQ(CompressionError{}.relative(), 0);
}

TEST(CompressedTraining, PlainStepsHaveThePlainBits) {
  const auto compressed = make_trainer(setup_of("powersgd:start=3"));
  const auto plain = make_trainer(setup_of(""));
  for (int step = 0; step < 3; ++step) {
    compressed->step(false);
    plain->step(false);
    EXPECT_EQ(test::weights_of(*compressed, 0), test::weights_of(*plain, 0));
  }
  compressed->step(false);
  plain->step(false);
  EXPECT_NE(test::weights_of(*compressed, 0), test::weights_of(*plain, 0));
}

/// With error feedback a network of low rank updates converges as the plain one does; without it stays behind.
TEST(CompressedTraining, ErrorFeedbackLetsItConverge) {
  const auto loss_after = [](const std::string& compress) {
    TrainingSetup setup = setup_of(compress);
    setup.options.learning_rate = device::LearningRate(0.02);
    const auto trainer = make_trainer(setup);
    double loss = 0;
    for (int step = 0; step < 150; ++step) loss = trainer->step(false).loss;
    return loss;
  };
  const double plain = loss_after("");
  const double with = loss_after("batched-powersgd:start=2");
  const double without = loss_after("batched-powersgd:start=2,error-feedback=off");
  EXPECT_LT(plain, 0.1);
  EXPECT_LT(with, 2 * plain + 0.05);
  EXPECT_GT(without, 3 * with);
}

TEST(CompressedTraining, RefusesAnotherHookAndAnotherSplit) {
  const std::string path = testing::TempDir() + "/compressed_refused_" + std::to_string(::getpid()) + ".ckpt";
  const auto trainer = make_trainer(setup_of("powersgd:start=2"));
  for (int step = 0; step < 3; ++step) trainer->step(false);
  trainer->save(path);
  const auto refused = [&](const TrainingSetup& setup) {
    return test::refusal("checkpoint", [&] { make_trainer(setup)->load(path); });
  };
  EXPECT_NE(refused(setup_of("")).find("compress"), std::string::npos);
  EXPECT_NE(refused(setup_of("powersgd:start=2,rank=2")).find("compress"), std::string::npos);
  TrainingSetup other = setup_of("powersgd:start=2");
  other.last_indices = {2};
  EXPECT_NE(refused(other).find("buckets"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(CompressedTraining, RefusesSumsAndDynamicScales) {
  TrainingSetup sum = setup_of("powersgd:start=2");
  sum.options.gradients_mean = false;
  EXPECT_FALSE(test::refusal("unsupported", [&] { std::ignore = make_trainer(sum); }).empty());
}

}  // namespace
}  // namespace hcclsim::hccl
