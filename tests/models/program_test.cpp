// Programs whose gradients and updates are in the order of parameters.

#include "models/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/training/programs.hpp"

namespace hcclsim::models {
namespace {

using testing::ElementsAre;

/// Three gradients in the production order of parameters 2, 0, 1, with checks, a clip and updates.
Program program() {
  Program program;
  program.gradients = {{"c", 2, 4}, {"a", 0, 1}, {"b", 1, 2}};
  program.kernels.push_back(test::timed_kernel("backward", Phase::backward, 1));
  program.micro_batch_kernels = 1;
  for (std::uint32_t g = 0; g < 3; ++g) {
    program.kernels.push_back(test::timed_kernel("check:" + program.gradients[g].name, Phase::check, 1, g));
  }
  program.kernels.push_back(test::timed_kernel("clip", Phase::check, 1));
  for (std::uint32_t g = 0; g < 3; ++g) {
    program.kernels.push_back(test::timed_kernel("update:" + program.gradients[g].name, Phase::update, 1, g));
  }
  return program;
}

std::vector<std::string> kernels(const Program& program) {
  std::vector<std::string> names;
  for (const Kernel& kernel : program.kernels) names.push_back(kernel.name);
  return names;
}

TEST(Program, UpdatesInTheOrderOfParameters) {
  Program changed = program();
  order_updates_by_parameter(changed);
  EXPECT_THAT(kernels(changed),
              ElementsAre("backward", "check:a", "check:b", "check:c", "clip", "update:a", "update:b", "update:c"));
  EXPECT_EQ(changed.gradients[changed.kernels[1].gradient].name, "a");
}

TEST(Program, GradientsNumberedByParameters) {
  Program changed = program();
  number_gradients_by_parameter(changed);
  EXPECT_EQ(changed.gradients[0].name, "c");
  EXPECT_EQ(changed.gradients[1].name, "b");
  EXPECT_EQ(changed.gradients[2].name, "a");
  EXPECT_EQ(kernels(changed), kernels(program()));
  for (const Kernel& kernel : changed.kernels) {
    if (kernel.gradient == no_gradient) continue;
    EXPECT_EQ(kernel.name.substr(kernel.name.find(':') + 1), changed.gradients[kernel.gradient].name);
  }
}

}  // namespace
}  // namespace hcclsim::models
