#include "hccl/collective/selection/between_super_pods.hpp"

#include <fmt/format.h>

#include <bit>
#include <optional>

namespace hcclsim::hccl {
namespace {

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

LevelChoice choose_between_super_pods(Collective collective, const HcclConfig& config, Rank super_pods) {
  const std::optional<AlgoOperator> op = algo_operator_of(collective);
  if (!op.has_value()) return {Algorithm::ring, fmt::format("HCCL has no {} of its own", name_of(collective))};
  const LevelAlgorithm setting = config.algo.of(*op).between_super_pods;
  if (setting != LevelAlgorithm::automatic) return asked_for(collective, setting, 2);
  return chosen_by_hccl(collective, *op, super_pods);
}

}  // namespace hcclsim::hccl
