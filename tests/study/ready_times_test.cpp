#include "study/ready_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hcclsim::study {
namespace {

using models::Phase;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;

/// A forward pass of 2 s, then two gradients after 3 s and 4 s more; the first backward kernel carries none.
device::Workload workload() {
  device::Workload workload;
  workload.kernels = {{"forward", Phase::forward, 2, 100},
                      {"data", Phase::backward, 1, 10},
                      {"weight 1", Phase::backward, 2, 20},
                      {"weight 0", Phase::backward, 4, 10}};
  workload.gradients = {{.name = "1", .parameter = 1, .elements = 1, .kernel = 2, .update = {}},
                        {.name = "0", .parameter = 0, .elements = 3, .kernel = 3, .update = {}}};
  return workload;
}

TEST(ReadyTimes, WithoutJitterKernelsFollowEachOther) {
  EXPECT_EQ(forward_end(workload()), 2);
  EXPECT_THAT(jittered_ready(workload(), {}, 3, 7), ElementsAre(DoubleEq(5), DoubleEq(9)));
  // The slowest NPU decides.
  const device::Skew speeds({.speeds = {1, 0.5, 2}}, 3);
  EXPECT_THAT(jittered_ready(workload(), speeds, 3, 0), ElementsAre(DoubleEq(10), DoubleEq(18)));
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
  EXPECT_THAT(jittered_ready(workload(), skew, 2, 5), ElementsAre(DoubleEq(first_ready), DoubleEq(second_ready)));
  EXPECT_NE(jittered_ready(workload(), skew, 2, 5), jittered_ready(workload(), skew, 2, 6));
}

TEST(ReadyTimes, InProportionToFlopsOrBytes) {
  EXPECT_THAT(backward_flops(workload()), ElementsAre(30, 10));
  EXPECT_THAT(ready_in_proportion(backward_flops(workload()), 2, 10), ElementsAre(DoubleEq(8), DoubleEq(10)));
  EXPECT_THAT(ready_in_proportion(std::vector<double>{4, 12}, 2, 10), ElementsAre(DoubleEq(4), DoubleEq(10)));
  EXPECT_THAT(ready_in_proportion(std::vector<double>{0, 0}, 2, 10), IsEmpty());
}

TEST(ReadyTimes, TheForwardPassFollowsTheBackwardPass) {
  const device::Workload step = workload();
  EXPECT_THAT(forward_times(step, std::vector<Seconds>{5, 9}),
              ElementsAre(DoubleEq(2 * 3.0 / 7), DoubleEq(2 * 4.0 / 7)));
  device::Workload profile = step;
  profile.kernels.erase(profile.kernels.begin());
  EXPECT_THAT(forward_times(profile, std::vector<Seconds>{3, 7}), IsEmpty());
}

}  // namespace
}  // namespace hcclsim::study
