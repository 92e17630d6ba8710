#include "hccl/collective/selection/between_servers.hpp"

#include <fmt/format.h>

#include <bit>
#include <optional>
#include <vector>

#include "hccl/collective/formula.hpp"

namespace hcclsim::hccl {
namespace {

/// HCCL compares algorithms between servers with this latency of a step and this bandwidth of RDMA (its constants,
/// coll_alg_operator and device_capacity: 25 GB/s · 0.8; the 910A generation does not compare).
constexpr Seconds selection_latency = 60 * microsecond;
constexpr BytesPerSecond selection_rdma_bandwidth = 20 * giga;

/// From these sizes on, HCCL overlaps the levels on A2 in op mode: the size of a rank's block, and of the slice that
/// every rank reduces.
constexpr Bytes pipeline_block = 32 * 1024;
constexpr Bytes pipeline_slice = 1024 * 1024;

/// The algorithm with the least estimate; among equal ones, ring comes before NHR and NHR before halving-doubling.
LevelChoice cheapest(Collective collective, Rank servers, Bytes bytes) {
  std::optional<Algorithm> best;
  Seconds least = 0;
  std::string estimates;
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::nhr, Algorithm::halving_doubling}) {
    if (!has_outer(collective, algorithm)) continue;
    const auto terms = formula_terms(name_of(algorithm), collective, servers, static_cast<double>(bytes));
    if (!terms.has_value()) continue;
    const Seconds time = terms->steps * selection_latency + terms->bytes / selection_rdma_bandwidth;
    estimates += fmt::format("{}{} {:.1f} us", estimates.empty() ? "" : ", ", name_of(algorithm), time / microsecond);
    if (best.has_value() && time >= least) continue;
    best = algorithm;
    least = time;
  }
  return {best.value_or(Algorithm::ring),
          fmt::format("HCCL estimates, with 60 us a step and 20 GB/s for {} bytes, {}; the first of equal "
                      "ones wins",
                      bytes, estimates)};
}

bool takes_pipeline(const Operation& operation, LaunchMode launch, const HcclConfig& config, const device::Soc& soc) {
  if (launch != LaunchMode::op || soc.generation != device::Generation::a2 || config.determinism != Determinism::off)
    return false;
  if (!has_algorithm(operation.collective, Algorithm::pipeline)) return false;
  if (operation.collective == Collective::allreduce) return operation.payload() / operation.ranks >= pipeline_slice;
  return operation.largest_block() * size_of(operation.type) >= pipeline_block;
}

/// Bytes of the payload that a rank's level 1 works on (hierarchical.hpp).
Bytes bytes_between(const Operation& operation, const Topology& topology) {
  if (operation.blocks() == 1) return operation.payload() / topology.ranks_per_server;
  return operation.payload() / topology.servers * topology.servers_per_pod();
}

LevelChoice chosen_by_hccl(const Operation& operation, LaunchMode launch, const HcclConfig& config,
                           const Topology& topology, const device::Soc& soc, bool in_levels) {
  const Collective collective = operation.collective;
  const bool a3 = soc.generation == device::Generation::a3;
  const Rank servers = topology.servers_per_pod();
  if (collective == Collective::broadcast) {
    return first_of(collective, {a3 ? Algorithm::nhr : Algorithm::halving_doubling, Algorithm::ring},
                    fmt::format("HCCL's broadcast between servers is {}", a3 ? "NHR on A3" : "halving-doubling"));
  }
  if (collective == Collective::reduce) {
    return first_of(collective, {a3 ? Algorithm::ring : Algorithm::halving_doubling, Algorithm::ring},
                    fmt::format("HCCL's reduce between servers is {}", a3 ? "the ring on A3" : "halving-doubling"));
  }
  if (collective == Collective::scatter || collective == Collective::gather) {
    return first_of(collective, {Algorithm::ring}, "HCCL's scatter between servers is the ring");
  }
  if (soc.generation == device::Generation::a1) {
    if (std::has_single_bit(servers)) {
      return first_of(collective, {Algorithm::halving_doubling, Algorithm::ring},
                      fmt::format("{} servers are a power of two", servers));
    }
    return {Algorithm::ring, fmt::format("{} servers are no power of two", servers)};
  }
  if (!in_levels && takes_pipeline(operation, launch, config, soc)) {
    return {Algorithm::pipeline,
            operation.collective == Collective::allreduce
                ? fmt::format("slices of at least {} bytes per rank overlap the levels", pipeline_slice)
                : fmt::format("blocks of at least {} bytes overlap the levels", pipeline_block)};
  }
  return cheapest(collective, servers, bytes_between(operation, topology));
}

/// From this number of super-pods on HCCL takes halving-doubling, whether it is a power of two or not.
constexpr Rank many_super_pods = 8;

bool has_on_a3(AlgoOperator op, LevelAlgorithm algorithm) {
  return has_between_super_pods(device::Generation::a3, op, algorithm);
}

LevelChoice chosen_by_hccl(Collective collective, AlgoOperator op, Rank super_pods) {
  const bool in_ring = super_pods < many_super_pods && !std::has_single_bit(super_pods);
  const std::string why =
      in_ring ? fmt::format("{} super-pods are fewer than {} and no power of two", super_pods, many_super_pods)
              : fmt::format(
                    "{} super-pods are {}", super_pods,
                    std::has_single_bit(super_pods) ? "a power of two" : fmt::format("at least {}", many_super_pods));
  if (has_on_a3(op, in_ring ? LevelAlgorithm::ring : LevelAlgorithm::halving_doubling)) {
    return {in_ring ? Algorithm::ring : Algorithm::halving_doubling, why};
  }
  return {Algorithm::nhr, fmt::format("{}, but HCCL has no {} of {} between super-pods", why,
                                      in_ring ? "ring" : "halving-doubling", name_of(collective))};
}

}  // namespace

LevelChoice choose_between_servers(const Operation& operation, LaunchMode launch, const HcclConfig& config,
                                   const Topology& topology, const device::Soc& soc, bool in_levels) {
  const LevelAlgorithm setting = asked_levels(operation.collective, config).between_servers;
  if (setting != LevelAlgorithm::automatic) return asked_for(operation.collective, setting, 1);
  return chosen_by_hccl(operation, launch, config, topology, soc, in_levels);
}

LevelChoice choose_between_super_pods(Collective collective, const HcclConfig& config, Rank super_pods) {
  const std::optional<AlgoOperator> op = algo_operator_of(collective);
  if (!op.has_value()) return {Algorithm::ring, fmt::format("HCCL has no {} of its own", name_of(collective))};
  const LevelAlgorithm setting = config.algo.of(*op).between_super_pods;
  if (setting != LevelAlgorithm::automatic) return asked_for(collective, setting, 2);
  return chosen_by_hccl(collective, *op, super_pods);
}

}  // namespace hcclsim::hccl
