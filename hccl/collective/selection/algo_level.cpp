#include "hccl/collective/selection/algo_level.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

bool is_simulated(Collective collective, const NamedLevel& named, int level) {
  if (spans_levels(named.algorithm)) return level == 1 && has_algorithm(collective, named.algorithm);
  const std::optional<AlgoOperator> op = algo_operator_of(collective);
  const bool named_there = level == 1 || has_between_super_pods(device::Generation::a3, op.value(), named.setting);
  return named_there && has_outer(collective, named.algorithm);
}

}  // namespace

bool spans_levels(Algorithm algorithm) {
  return algorithm == Algorithm::ahc || algorithm == Algorithm::pipeline || algorithm == Algorithm::pairwise;
}

std::optional<AlgoOperator> algo_operator_of(Collective collective) {
  using enum AlgoOperator;
  constexpr std::array<std::optional<AlgoOperator>, 10> operators{
      allreduce, reduce_scatter, allgather, broadcast, reduce, scatter, std::nullopt, alltoall};  // by Collective
  return operators[static_cast<std::size_t>(collective)];
}

AlgoLevels asked_levels(Collective collective, const HcclConfig& config) {
  const std::optional<AlgoOperator> op = algo_operator_of(collective);
  return op.has_value() ? config.algo.of(*op) : AlgoLevels{};
}

LevelChoice asked_for(Collective collective, LevelAlgorithm setting, int level) {
  std::vector<std::string_view> simulated;
  for (const NamedLevel& named : named_levels) {
    if (!is_simulated(collective, named, level)) continue;
    if (named.setting == setting) {
      return {named.algorithm, fmt::format("HCCL_ALGO says level{}:{}", level, name_of(setting))};
    }
    simulated.push_back(name_of(named.setting));
  }
  bad_input("collective", "HCCL_ALGO level{}:{} is not simulated for {}; use {}", level, name_of(setting),
            name_of(collective), fmt::join(simulated, " or "));
}

LevelChoice first_of(Collective collective, std::initializer_list<Algorithm> algorithms, std::string rule) {
  for (const Algorithm algorithm : algorithms) {
    if (has_outer(collective, algorithm)) return {algorithm, std::move(rule)};
  }
  return {Algorithm::ring, std::move(rule)};
}

}  // namespace hcclsim::hccl
