#include "hccl/numerics/gradient_check.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/data/dataset.hpp"
#include "tests/support/training.hpp"

/// Gradients against finite differences: right ones never differ, wrong ones do.
namespace hcclsim::hccl {
namespace {

std::vector<GradientSample> samples_of(const std::string& model, std::uint64_t seed,
                                       const device::ProgramOptions& program = {}, float loss_scale = 1) {
  test::TrainingSetup setup{.model = model, .batch = 16, .npus = 1};
  setup.options.seed = seed;
  setup.options.workers = 1;
  setup.options.program = program;
  const auto trainer = test::make_trainer(setup);
  models::Batch batch;
  const std::vector<std::uint64_t> numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  models::fill(batch, trainer->data(), numbers);
  device::Weights weights(trainer->replicas().variants().front().weights);
  device::WorkerPool pool(1);
  return check_gradients(trainer->program(), weights, batch, {.loss_scale = loss_scale}, 10, seed, pool);
}

long count(const std::vector<GradientSample>& samples, SampleVerdict verdict) {
  return std::count_if(samples.begin(), samples.end(), [&](const auto& sample) { return sample.verdict == verdict; });
}

TEST(GradientCheck, RightGradientsAgree) {
  for (const char* const model : {"mlp:64,128,96,10", "lenet", "smallres", "tinygpt"}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", model, seed));
      const std::vector<GradientSample> samples = samples_of(model, seed, {}, 1024);
      EXPECT_GE(samples.size(), 6);
      EXPECT_EQ(count(samples, SampleVerdict::differs), 0);
      EXPECT_LE(count(samples, SampleVerdict::unclear), 2);
    }
  }
}

/// Gradients that fp16 cuts at 65504 are wrong ones.
TEST(GradientCheck, GradientsThatAreCutDiffer) {
  const device::ProgramOptions program{.round = DataType::fp16, .overflow = device::Overflow::saturate};
  const std::vector<GradientSample> samples = samples_of("mlp:64,128,96,10", 1, program, 0x1p30F);
  EXPECT_GT(count(samples, SampleVerdict::differs), 0);
}

}  // namespace
}  // namespace hcclsim::hccl
