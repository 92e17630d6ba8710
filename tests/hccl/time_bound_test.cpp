#include "hccl/runtime/time_bound.hpp"

#include <gtest/gtest.h>

#include "tests/support/simulation.hpp"

namespace hcclsim::hccl {
namespace {

/// The bound for 4000 bytes on two servers of two; within them links of 10 GB/s, between them ports of 5 GB/s.
double bound(Collective collective, const std::vector<Rank>& npus) {
  test::TestPlatform platform;
  platform.servers = 2;
  const std::string path = test::write_platform(platform);
  return test::in_child([&] {
    sim::Cluster cluster(path);
    const auto ranks = static_cast<Rank>(npus.size());
    Operation operation{.ranks = ranks, .elements = 1000, .collective = collective};
    operation.elements /= operation.blocks();
    return std::vector<double>{time_bound(operation, {"some", npus}, cluster)};
  })[0];
}

TEST(TimeBound, WhatARankMustSendLeavesThroughItsFirstLinks) {
  // A link to the other of the server and a port to the other server: 15 GB/s.
  EXPECT_DOUBLE_EQ(bound(Collective::allreduce, {0, 1, 2, 3}), 2 * 0.75 * 4000 / 15e9);
  EXPECT_DOUBLE_EQ(bound(Collective::allgather, {0, 1, 2, 3}), 0.75 * 4000 / 15e9);
  EXPECT_DOUBLE_EQ(bound(Collective::broadcast, {0, 1, 2, 3}), 4000 / 15e9);
  EXPECT_DOUBLE_EQ(bound(Collective::allreduce, {0, 1}), 4000 / 10e9);
  EXPECT_DOUBLE_EQ(bound(Collective::allreduce, {0, 2}), 4000 / 5e9);
  EXPECT_DOUBLE_EQ(bound(Collective::allreduce, {0}), 0);
}

}  // namespace
}  // namespace hcclsim::hccl
