#include "hccl/training/numerics/gradient_check.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "models/data/dataset.hpp"
#include "tests/support/training/training.hpp"

/// Gradients against finite differences: right ones never differ, wrong ones do.
namespace hcclsim::hccl {
namespace {

std::vector<GradientSample> samples_of(const std::string& model, std::uint64_t seed, float loss_scale) {
  test::TrainingSetup setup{.model = model, .batch = 16, .npus = 1};
  setup.options.seed = seed;
  setup.options.workers = 1;
  const auto trainer = test::make_trainer(setup);
  models::Batch batch;
  const std::vector<std::uint64_t> numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  models::fill(batch, trainer->data(), numbers);
  device::Weights weights(trainer->stage(0).store().weights_of(0));
  device::WorkerPool pool(1);
  return check_gradients(trainer->stage(0).computation(), weights, batch, {.loss_scale = loss_scale}, 10, seed, pool);
}

long count(const std::vector<GradientSample>& samples, SampleVerdict verdict) {
  return std::count_if(samples.begin(), samples.end(), [&](const auto& sample) { return sample.verdict == verdict; });
}

TEST(GradientCheck, RightGradientsAgree) {
  for (const char* const model : {"mlp:64,128,96,10", "lenet", "smallres", "tinygpt"}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", model, seed));
      const std::vector<GradientSample> samples = samples_of(model, seed, 1024);
      EXPECT_GE(samples.size(), 6);
      EXPECT_EQ(count(samples, SampleVerdict::differs), 0);
      EXPECT_LE(count(samples, SampleVerdict::unclear), 2);
    }
  }
}

/// Gradients of a tiny loss scale vanish or lose most of their bits among the subnormal numbers; those of an infinite
/// one are no numbers.
TEST(GradientCheck, WrongGradientsDiffer) {
  EXPECT_GE(count(samples_of("mlp:64,128,96,10", 1, 0x1p-145F), SampleVerdict::differs), 4);
  const std::vector<GradientSample> samples = samples_of("mlp:64,128,96,10", 1, std::numeric_limits<float>::infinity());
  EXPECT_EQ(count(samples, SampleVerdict::differs), static_cast<long>(samples.size()));
}

}  // namespace
}  // namespace hcclsim::hccl
