#pragma once

#include "sim/cluster.hpp"
#include "study/run/split/problem.hpp"

/// What the vendor's tuning tool (AOE, gradient split) takes an allreduce to cost: rings in the servers over four
/// ports, then a ring between the servers, each with a synchronisation per step and a jitter (constants of the graph
/// engine's calculation tool). With p ranks on each of q servers, in milliseconds and GB/s:
///
///     fixed    p · 0.0005 + (4 − 1) · 0.0004
///     server   2(p−1) · (0.001 + 4 · 0.009)            + 2(p−1)/p · n / (4 · 14) + 0.1 of jitter
///     between  2(q−1) · 0.015 + 2(q−1)/q · n/p / 10 + (q−1)/q · n/p / 200        + 1 of jitter
///
/// The published table gives no unit for the jitter; it is taken as milliseconds per allreduce, like what stands beside
/// it.
namespace hcclsim::study {

[[nodiscard]] AffineCost aoe_cost(Rank ranks_per_server, Rank servers);

}  // namespace hcclsim::study
