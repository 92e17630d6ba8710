#include "study/compare/tune/ready_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/training/programs.hpp"

namespace hcclsim::study {
namespace {

using models::Phase;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;

models::Kernel kernel(const char* name, Phase phase, Seconds duration, Flops flops) {
  models::Kernel kernel = test::timed_kernel(name, phase, duration);
  kernel.flops = flops;
  return kernel;
}

/// A forward pass of 2 s, then two gradients after 3 s and 4 s more; the first backward kernel carries none. What comes
/// once per step matters to no gradient.
models::Program program() {
  models::Program program;
  program.kernels = {kernel("forward", Phase::forward, 2, 100),   kernel("data", Phase::backward, 1, 10),
                     kernel("weight 1", Phase::backward, 2, 20),  kernel("weight 0", Phase::backward, 4, 10),
                     kernel("1:momentum", Phase::update, 3, 300), kernel("0:momentum", Phase::update, 5, 500)};
  program.micro_batch_kernels = 4;
  program.gradients = {{.name = "1", .parameter = 1, .elements = 1, .kernel = 2},
                       {.name = "0", .parameter = 0, .elements = 3, .kernel = 3}};
  return program;
}

TEST(ReadyTimes, WithoutJitterKernelsFollowEachOther) {
  EXPECT_EQ(forward_end(program()), 2);
  EXPECT_THAT(jittered_ready(program(), {}, 3, 7), ElementsAre(DoubleEq(5), DoubleEq(9)));
  // The slowest NPU decides.
  const device::Skew speeds({.speeds = {1, 0.5, 2}}, 3);
  EXPECT_THAT(jittered_ready(program(), speeds, 3, 0), ElementsAre(DoubleEq(10), DoubleEq(18)));
}

TEST(ReadyTimes, JitterIsThatOfTheSimulatedKernels) {
  const device::Skew skew({.jitter = 0.1, .seed = 3}, 2);
  Seconds first_ready = 0;
  Seconds second_ready = 0;
  for (Rank rank = 0; rank < 2; ++rank) {
    const auto time = [&](std::uint32_t kernel, Seconds nominal) { return nominal * skew.jitter(rank, 5, kernel); };
    const Seconds first = time(0, 2) + time(1, 1) + time(2, 2);
    first_ready = std::max(first_ready, first);
    second_ready = std::max(second_ready, first + time(3, 4));
  }
  EXPECT_THAT(jittered_ready(program(), skew, 2, 5), ElementsAre(DoubleEq(first_ready), DoubleEq(second_ready)));
  EXPECT_NE(jittered_ready(program(), skew, 2, 5), jittered_ready(program(), skew, 2, 6));
}

TEST(ReadyTimes, InProportionToFlopsOrBytes) {
  EXPECT_THAT(backward_flops(program()), ElementsAre(30, 10));
  EXPECT_THAT(ready_in_proportion(backward_flops(program()), 2, 10), ElementsAre(DoubleEq(8), DoubleEq(10)));
  EXPECT_THAT(ready_in_proportion(std::vector<double>{4, 12}, 2, 10), ElementsAre(DoubleEq(4), DoubleEq(10)));
  EXPECT_THAT(ready_in_proportion(std::vector<double>{0, 0}, 2, 10), IsEmpty());
}

TEST(ReadyTimes, TheForwardPassFollowsTheBackwardPass) {
  const models::Program step = program();
  EXPECT_THAT(forward_times(step, std::vector<Seconds>{5, 9}),
              ElementsAre(DoubleEq(2 * 3.0 / 7), DoubleEq(2 * 4.0 / 7)));
  models::Program profile = step;
  profile.kernels.erase(profile.kernels.begin());
  --profile.micro_batch_kernels;
  EXPECT_THAT(forward_times(profile, std::vector<Seconds>{3, 7}), IsEmpty());
}

}  // namespace
}  // namespace hcclsim::study
