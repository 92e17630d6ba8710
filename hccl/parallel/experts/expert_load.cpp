#include "hccl/parallel/experts/expert_load.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/counter_random.hpp"
#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

constexpr double greatest_skew = 1000;

/// Experts in the order of their shares: sorted by random numbers.
std::vector<std::uint32_t> order_of_experts(std::uint64_t seed, std::uint32_t layer, std::uint32_t experts) {
  std::vector<std::uint32_t> order(experts);
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](std::uint32_t e) { return counter_bits(seed, random_stream::expert_order + layer, e); };
  std::ranges::stable_sort(order, {}, key);
  return order;
}

}  // namespace

std::vector<std::uint64_t> expert_load(const ExpertSkew& skew, std::uint32_t layer, std::uint32_t experts,
                                       std::uint64_t rows) {
  if (!(skew.skew >= 0 && skew.skew <= greatest_skew)) {
    bad_input("option", "the skew of experts must be 0 to {}, got {}", greatest_skew, skew.skew);
  }
  std::vector<double> shares(experts);
  double sum = 0;
  double place = 0;
  for (const std::uint32_t expert : order_of_experts(skew.seed, layer, experts)) {
    sum += shares[expert] = 1 / (1 + skew.skew * place);
    ++place;
  }
  std::vector<std::uint64_t> load(experts);
  std::vector<double> remainders(experts);
  std::uint64_t placed = 0;
  for (std::uint32_t expert = 0; expert < experts; ++expert) {
    const double exact = static_cast<double>(rows) * shares[expert] / sum;
    placed += load[expert] = std::min(static_cast<std::uint64_t>(exact), rows - placed);
    remainders[expert] = exact - std::floor(exact);
  }
  std::vector<std::uint32_t> by_remainder(experts);
  std::iota(by_remainder.begin(), by_remainder.end(), 0U);
  std::ranges::stable_sort(by_remainder, std::greater(), [&](std::uint32_t e) { return remainders[e]; });
  for (std::uint32_t next = 0; placed < rows; ++placed, ++next) ++load[by_remainder[next % experts]];
  return load;
}

}  // namespace hcclsim::hccl
