#include "hccl/collective/level1.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "hccl/collective/formula.hpp"

namespace hcclsim::hccl {
namespace {

/// HCCL compares algorithms between servers with this latency of a step and this bandwidth of RDMA (its constants,
/// coll_alg_operator and device_capacity: 25 GB/s · 0.8; the 910A generation does not compare).
constexpr Seconds selection_latency = 60 * microsecond;
constexpr BytesPerSecond selection_rdma_bandwidth = 20 * giga;

/// From these sizes on HCCL overlaps the levels on A2, in op mode: of a rank's block, and of the slice that every rank
/// reduces.
constexpr Bytes pipeline_block = 32 * 1024;
constexpr Bytes pipeline_slice = 1024 * 1024;

std::optional<AlgoOperator> algo_operator_of(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return AlgoOperator::allreduce;
    case Collective::reduce_scatter:
      return AlgoOperator::reduce_scatter;
    case Collective::allgather:
      return AlgoOperator::allgather;
    case Collective::broadcast:
      return AlgoOperator::broadcast;
    case Collective::reduce:
      return AlgoOperator::reduce;
    case Collective::scatter:
      return AlgoOperator::scatter;
    case Collective::alltoall:
      return AlgoOperator::alltoall;
    default:
      return std::nullopt;
  }
}

struct NamedLevel {
  LevelAlgorithm setting;
  Algorithm algorithm;
};
constexpr std::array<NamedLevel, 8> named_levels{{{LevelAlgorithm::ring, Algorithm::ring},
                                                  {LevelAlgorithm::halving_doubling, Algorithm::halving_doubling},
                                                  {LevelAlgorithm::nhr, Algorithm::nhr},
                                                  {LevelAlgorithm::nhr_v1, Algorithm::nhr_v1},
                                                  {LevelAlgorithm::nb, Algorithm::nb},
                                                  {LevelAlgorithm::ahc, Algorithm::ahc},
                                                  {LevelAlgorithm::pipeline, Algorithm::pipeline},
                                                  {LevelAlgorithm::pairwise, Algorithm::pairwise}}};

bool spans_levels(Algorithm algorithm) {
  return algorithm == Algorithm::ahc || algorithm == Algorithm::pipeline || algorithm == Algorithm::pairwise;
}

bool is_simulated(Collective collective, Algorithm algorithm) {
  return spans_levels(algorithm) ? has_algorithm(collective, algorithm) : has_outer(collective, algorithm);
}

Level1 asked_for(Collective collective, LevelAlgorithm setting) {
  std::vector<std::string_view> simulated;
  for (const NamedLevel& level : named_levels) {
    if (!is_simulated(collective, level.algorithm)) continue;
    if (level.setting == setting) return {level.algorithm, fmt::format("HCCL_ALGO says level1:{}", name_of(setting))};
    simulated.push_back(name_of(level.setting));
  }
  bad_input("collective", "HCCL_ALGO level1:{} is not simulated for {}; use {}", name_of(setting), name_of(collective),
            fmt::join(simulated, " or "));
}

/// The least estimate; of equal ones ring before NHR before halving-doubling.
Level1 cheapest(Collective collective, Rank servers, Bytes slice) {
  std::optional<Algorithm> best;
  Seconds least = 0;
  std::string estimates;
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::nhr, Algorithm::halving_doubling}) {
    if (!has_outer(collective, algorithm)) continue;
    const auto terms = formula_terms(name_of(algorithm), collective, servers, static_cast<double>(slice));
    if (!terms.has_value()) continue;
    const Seconds time = terms->steps * selection_latency + terms->bytes / selection_rdma_bandwidth;
    estimates += fmt::format("{}{} {:.1f} us", estimates.empty() ? "" : ", ", name_of(algorithm), time / microsecond);
    if (best.has_value() && time >= least) continue;
    best = algorithm;
    least = time;
  }
  return {best.value_or(Algorithm::ring),
          fmt::format("HCCL estimates, with 60 us a step and 20 GB/s for slices of {} bytes, {}; the first of equal "
                      "ones wins",
                      slice, estimates)};
}

bool takes_pipeline(const Operation& operation, LaunchMode launch, const HcclConfig& config, const device::Soc& soc) {
  if (launch != LaunchMode::op || soc.generation != device::Generation::a2 || config.determinism != Determinism::off)
    return false;
  if (!has_algorithm(operation.collective, Algorithm::pipeline)) return false;
  if (operation.collective == Collective::allreduce) return operation.payload() / operation.ranks >= pipeline_slice;
  return operation.largest_block() * size_of(operation.type) >= pipeline_block;
}

Level1 first_of(Collective collective, std::initializer_list<Algorithm> algorithms, std::string rule) {
  const bool in_levels = has_algorithm(collective, Algorithm::hierarchical);
  for (const Algorithm algorithm : algorithms) {
    const bool simulated = in_levels ? has_outer(collective, algorithm) : has_algorithm(collective, algorithm);
    if (simulated) return {algorithm, std::move(rule)};
  }
  return {Algorithm::ring, std::move(rule)};
}

Level1 chosen_by_hccl(const Operation& operation, LaunchMode launch, const HcclConfig& config, const Topology& topology,
                      const device::Soc& soc, bool in_levels) {
  const Collective collective = operation.collective;
  const bool a3 = soc.generation == device::Generation::a3;
  const Rank servers = topology.servers;
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
  return cheapest(collective, servers, operation.payload() / topology.ranks_per_server);
}

LevelAlgorithm setting_of(Collective collective, const HcclConfig& config) {
  const std::optional<AlgoOperator> op = algo_operator_of(collective);
  return op.has_value() ? config.algo.of(*op).level1 : LevelAlgorithm::automatic;
}

}  // namespace

bool asks_for_ahc(Collective collective, const HcclConfig& config) {
  return setting_of(collective, config) == LevelAlgorithm::ahc;
}

Level1 choose_level1(const Operation& operation, LaunchMode launch, const HcclConfig& config, const Topology& topology,
                     const device::Soc& soc, bool in_levels) {
  const LevelAlgorithm setting = setting_of(operation.collective, config);
  if (setting != LevelAlgorithm::automatic) return asked_for(operation.collective, setting);
  return chosen_by_hccl(operation, launch, config, topology, soc, in_levels);
}

}  // namespace hcclsim::hccl
