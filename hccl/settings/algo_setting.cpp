#include "hccl/settings/algo_setting.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::array<std::string_view, 9> level_algorithm_names{"NA", "ring", "H-D_R",    "NHR",     "NHR_V1",
                                                                "NB", "AHC",  "pipeline", "pairwise"};
constexpr std::array<std::string_view, algo_operators> operator_names{
    "allgather", "reducescatter", "allreduce", "broadcast", "reduce", "scatter", "alltoall"};

constexpr std::string_view forms =
    "level0:NA;level1:ALGORITHM;level2:ALGORITHM for all operators, or OPERATOR=LEVELS/OPERATOR=LEVELS";

// The algorithms of the levels, in the order in which messages list them.
constexpr auto of_servers = [] {
  using enum LevelAlgorithm;
  return std::array{automatic, ring, halving_doubling, nhr, nhr_v1, nb, ahc, pipeline, pairwise};
}();
constexpr auto of_super_pods = [] {
  using enum LevelAlgorithm;
  return std::array{automatic, ring, halving_doubling, nhr, nb, pipeline};
}();

LevelAlgorithm parse_algorithm(std::string_view level, std::string_view name,
                               std::span<const LevelAlgorithm> accepted) {
  std::vector<std::string> names;
  for (const LevelAlgorithm algorithm : accepted) {
    if (name_of(algorithm) == name) return algorithm;
    names.emplace_back(name_of(algorithm));
  }
  bad_input("environment", "'{}' is not an algorithm of {}; accepted: {}{}", name, level, fmt::join(names, ", "),
            did_you_mean(name, names));
}

AlgoLevels parse_algo_levels(std::string_view text) {
  AlgoLevels levels;
  std::vector<std::string_view> seen;
  for (const std::string_view part : split(text, ';')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == part.size()) {
      bad_input("environment", "'{}' is not LEVEL:ALGORITHM; write {}", part, forms);
    }
    const std::string_view level = part.substr(0, colon);
    const std::string_view name = part.substr(colon + 1);
    if (std::find(seen.begin(), seen.end(), level) != seen.end()) {
      bad_input("environment", "{} is given twice in '{}'; give it once", level, text);
    }
    seen.push_back(level);
    if (level == "level0") {
      if (name != "NA") {
        bad_input("environment", "'{}' is not accepted for level0; accepted: NA, HCCL chooses inside a server itself",
                  name);
      }
    } else if (level == "level1") {
      levels.between_servers = parse_algorithm(level, name, of_servers);
    } else if (level == "level2") {
      levels.between_super_pods = parse_algorithm(level, name, of_super_pods);
    } else {
      bad_input("environment", "unknown level '{}'; accepted: level0, level1, level2", level);
    }
  }
  if (levels.between_servers == LevelAlgorithm::ahc) levels.between_super_pods = LevelAlgorithm::ahc;
  return levels;
}

AlgoOperator parse_operator(std::string_view name) {
  const auto found = std::find(operator_names.begin(), operator_names.end(), name);
  if (found == operator_names.end()) {
    std::vector<std::string> names(operator_names.begin(), operator_names.end());
    names.emplace_back("others");
    bad_input("environment", "'{}' is not an operator; accepted: {}{}", name, fmt::join(names, ", "),
              did_you_mean(name, names));
  }
  return static_cast<AlgoOperator>(found - operator_names.begin());
}

AlgoSetting parse_per_operator(std::span<const std::string_view> parts) {
  AlgoSetting setting;
  std::vector<std::string_view> seen;
  AlgoLevels others;
  std::array<bool, algo_operators> named{};
  for (const std::string_view part : parts) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      bad_input("environment", "'{}' has no operator, other parts have; write {}", part, forms);
    }
    const std::string_view name = part.substr(0, equals);
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      bad_input("environment", "operator {} is given twice; give it once", name);
    }
    seen.push_back(name);
    if (name == "others") {
      others = parse_algo_levels(part.substr(equals + 1));
      continue;
    }
    const AlgoOperator op = parse_operator(name);
    setting.of(op) = parse_algo_levels(part.substr(equals + 1));
    named[static_cast<std::size_t>(op)] = true;
  }
  for (std::size_t op = 0; op < algo_operators; ++op) {
    if (!named[op]) setting.operators[op] = others;
  }
  return setting;
}

bool is_one_of(AlgoOperator op, std::initializer_list<AlgoOperator> operators) {
  return std::find(operators.begin(), operators.end(), op) != operators.end();
}

}  // namespace

std::string_view name_of(LevelAlgorithm algorithm) {
  return level_algorithm_names[static_cast<std::size_t>(algorithm)];
}
std::string_view name_of(AlgoOperator op) { return operator_names[static_cast<std::size_t>(op)]; }

AlgoSetting parse_algo_setting(std::string_view text) {
  std::string dense(text);
  std::erase(dense, ' ');
  if (dense.empty()) return {};
  const std::vector<std::string_view> parts = split(dense, '/');
  if (dense.find('=') != std::string::npos) return parse_per_operator(parts);
  if (parts.size() > 1) {
    bad_input("environment", "'/' separates operators, and '{}' names none; write {}", parts.front(), forms);
  }
  AlgoSetting setting;
  setting.operators.fill(parse_algo_levels(dense));
  return setting;
}

bool has_between_servers(device::Generation generation, AlgoOperator op, LevelAlgorithm algorithm) {
  using enum AlgoOperator;
  using enum LevelAlgorithm;
  using enum device::Generation;
  const bool in_slices = is_one_of(op, {reduce_scatter, allgather, allreduce});
  switch (algorithm) {
    case automatic:
      return true;
    case ring:
      return in_slices || op == reduce || (op == scatter && generation != a1);
    case halving_doubling:
      return generation != a3 && (in_slices || is_one_of(op, {broadcast, reduce}));
    case nhr:
      return in_slices || op == broadcast || (op == scatter && generation != a1);
    case nhr_v1:
      return generation != a3 && (in_slices || op == broadcast);
    case nb:
      return in_slices || is_one_of(op, {broadcast, scatter});
    case ahc:
      return generation == a3 && in_slices;
    case pipeline:
      return generation == a2 && (in_slices || op == alltoall);
    case pairwise:
      return generation == a2 && op == alltoall;
  }
  return false;
}

bool has_between_super_pods(device::Generation generation, AlgoOperator op, LevelAlgorithm algorithm) {
  using enum AlgoOperator;
  using enum LevelAlgorithm;
  if (algorithm == automatic) return true;
  if (generation != device::Generation::a3) return false;
  const bool in_slices = is_one_of(op, {reduce_scatter, allgather, allreduce});
  switch (algorithm) {
    case ring:
      return in_slices || is_one_of(op, {reduce, scatter});
    case halving_doubling:
      return is_one_of(op, {allreduce, broadcast, reduce});
    case nhr:
    case nb:
      return in_slices || is_one_of(op, {broadcast, scatter});
    case ahc:
      return in_slices;
    case pipeline:
      return is_one_of(op, {reduce_scatter, allgather});
    default:
      return false;
  }
}

AlgoLevels available(AlgoLevels levels, device::Generation generation, AlgoOperator op) {
  using enum LevelAlgorithm;
  if (levels.between_servers == ahc) return has_between_servers(generation, op, ahc) ? levels : AlgoLevels{};
  if (!has_between_servers(generation, op, levels.between_servers)) levels.between_servers = automatic;
  if (!has_between_super_pods(generation, op, levels.between_super_pods)) levels.between_super_pods = automatic;
  return levels;
}

}  // namespace hcclsim::hccl
