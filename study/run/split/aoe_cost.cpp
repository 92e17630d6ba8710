#include "study/run/split/aoe_cost.hpp"

namespace hcclsim::study {
namespace {

constexpr Seconds millisecond = 1e-3;

/// Steps and bytes of a ring allreduce among so many, per byte of the payload.
struct Ring {
  explicit Ring(Rank members) : steps(2 * (static_cast<double>(members) - 1)), bytes(steps / members) {}
  double steps;
  double bytes;
};

}  // namespace

AffineCost aoe_cost(Rank ranks_per_server, Rank servers) {
  constexpr double ports = 4;
  constexpr BytesPerSecond port_speed = 14 * giga;
  constexpr BytesPerSecond speed_between = 10 * giga;
  constexpr BytesPerSecond reduction_speed = 200 * giga;
  constexpr Seconds step_in_server = (0.001 + ports * 0.009) * millisecond;
  constexpr Seconds step_between = 0.015 * millisecond;
  constexpr Seconds jitter_in_server = 0.1 * millisecond;
  constexpr Seconds jitter_between = 1 * millisecond;
  AffineCost cost{.alpha = (ranks_per_server * 0.0005 + (ports - 1) * 0.0004) * millisecond};
  if (ranks_per_server > 1) {
    const Ring ring(ranks_per_server);
    cost.alpha += ring.steps * step_in_server + jitter_in_server;
    cost.beta += ring.bytes / (ports * port_speed);
  }
  if (servers > 1) {
    const Ring ring(servers);
    cost.alpha += ring.steps * step_between + jitter_between;
    cost.beta += (ring.bytes / speed_between + ring.bytes / 2 / reduction_speed) / ranks_per_server;
  }
  return cost;
}

}  // namespace hcclsim::study
