#pragma once

#include "tests/support/simulation.hpp"

/// A server with a link for every pair of NPUs on which HCCL's formulas (D = alpha + n·beta + n·gamma per step) hold to
/// the last bit: waits and queues are free, and alpha is the sum of the parts below.
namespace hcclsim::test {

inline constexpr double latency = 0.3e-6;
inline constexpr double record = 1e-6;
inline constexpr double setup = 0.6e-6;
/// A step: post, wait, set up, move, post, wait.
inline constexpr double alpha = record + setup + latency + record;
inline constexpr double beta = 1 / 10e9;
inline constexpr double gamma_cost = 1 / 4e9;

inline TestPlatform formula_platform(Rank ranks) {
  TestPlatform platform;
  platform.npus_per_server = ranks;
  platform.inner_latency = "300ns";
  platform.properties = {{"notify.record_us", "1"},    {"notify.record_local_us", "0"}, {"notify.wait_us", "0"},
                         {"sdma.setup_us", "0.6"},     {"sdma.setup_large_us", "0.6"},  {"reduce.setup_us", "0"},
                         {"reduce.bandwidth", "4GBps"}};
  return platform;
}

/// Such servers, in which every NPU has a port of its own to the other servers: 500 ns each, 7 us to set up.
inline TestPlatform two_level_platform(Rank servers, Rank npus_per_server) {
  TestPlatform platform = formula_platform(npus_per_server);
  platform.servers = servers;
  platform.outer_latency = "500ns";
  platform.properties.emplace_back("rdma.setup_us", "7");
  return platform;
}

}  // namespace hcclsim::test
