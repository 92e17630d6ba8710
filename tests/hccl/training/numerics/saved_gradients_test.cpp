#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/training/numerics/checkpoint.hpp"
#include "hccl/training/numerics/trainer.hpp"
#include "tests/support/training/net_oracle.hpp"
#include "tests/support/training/training.hpp"

/// The file of reduced gradients against the oracle's means.
namespace hcclsim::hccl {
namespace {

using test::make_trainer;
using test::TrainingSetup;

TrainingSetup saving_setup(double loss_scale) {
  const test::NetOracle oracle = test::net_oracle("lenet");
  TrainingSetup setup{.model = "lenet", .batch = oracle.batch, .npus = 4};
  setup.options.seed = oracle.seed;
  setup.options.workers = 2;
  setup.last_indices = {1, 3};
  if (loss_scale > 1) setup.options.loss_scale = device::LossScaler::parse(fmt::format("static:{}", loss_scale));
  return setup;
}

TEST(SavedGradients, AreTheMeansOfTheOracle) {
  const test::NetOracle oracle = test::net_oracle("lenet");
  for (const double loss_scale : {1.0, 1024.0}) {
    const auto trainer = make_trainer(saving_setup(loss_scale));
    EXPECT_FALSE(trainer->has_gradients());
    static_cast<void>(trainer->step(false));
    ASSERT_TRUE(trainer->has_gradients());
    const std::string path = testing::TempDir() + "gradients";
    trainer->save_gradients(path);
    CheckpointReader reader(path);
    const Checkpoint& file = reader.checkpoint();
    EXPECT_EQ(file.tensors, std::vector<std::string>{"gradients"});
    EXPECT_EQ(file.iteration, 1);
    ASSERT_EQ(file.parameters.size(), oracle.mean_gradients.size());
    for (std::size_t p = 0; p < file.parameters.size(); ++p) {
      std::vector<float> gradient(file.parameters[p].elements());
      reader.read(gradient);
      const test::OracleDeviation found =
          test::deviation(oracle.mean_gradients[p], test::Tensor(gradient.begin(), gradient.end()));
      EXPECT_LE(found.norm, 1e-4) << file.parameters[p].name;
      EXPECT_LE(found.samples, 1e-4) << file.parameters[p].name;
    }
    // What has no weights is nothing to go on from.
    EXPECT_THROW(static_cast<void>(trainer->load(path)), Error);
  }
}

}  // namespace
}  // namespace hcclsim::hccl
