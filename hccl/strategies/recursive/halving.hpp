#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "hccl/strategies/recursive/recursive_graph.hpp"

/// One step of MindSpore's recursive search: an operator is cut in two along one axis, or not at all, by a cost of its
/// own and the cost of what neighbours that were cut before it in this halving would have to exchange.
///
/// | operator | cut | cost | asks for |
/// | --- | --- | --- | --- |
/// | MatMul i×k · k×j | i | coefficient · j·k / 2 | i even; samples of a micro-batch left to share |
/// | | j | i·k / 2 | j even, k whole |
/// | | k | i·j / 2 | k even, j whole |
/// | | none | (least of the three)² / 25 | |
/// | BatchMatMul, samples × channels of them | samples | ρ·μ | even |
/// | | channels | ρ·μ − 1 | even |
/// | | i, j, k | half the elements of B, A, C | as MatMul |
/// | | none | μ² / 25 | |
/// | convolution | samples | half the elements of the filter | even |
/// | pooling | samples, channels | 0 | even |
/// | batch norm, Softmax, loss | the first even one of samples, channels, height, width | 0, and no exchange counts | |
/// | element-wise | samples, channels, height, width | 0 | even |
/// | others | none | | |
///
/// μ is 0.15 times half the elements of the smallest of A, B, C; ρ is 32 for a single product, else 32 / products − 1,
/// not below 0. All sizes are those of the current slices. (MindSpore r2.3, auto_parallel/rec_core/rec_cost.)
namespace hcclsim::hccl {

/// Where a cut runs through the tensors of an operator: the axis of each, if it does.
struct Halving {
  std::string_view name = "none";
  std::optional<std::size_t> first{};
  std::optional<std::size_t> second{};
  std::optional<std::size_t> output{};

  bool operator==(const Halving&) const = default;
};

struct PricedHalving {
  Halving halving;
  double cost = 0;  ///< of the operator alone
};

struct HalvingRules {
  double matmul_coefficient = 0.1;  ///< rp_matmul_mem_coef
  /// Of a pipeline: the samples of a micro-batch; rows are only cut while more than one of them is left to a device.
  std::optional<double> micro_batch{};
};

/// The cuts that are allowed, in the order in which equal ones are preferred.
[[nodiscard]] std::vector<PricedHalving> halvings_of(const RecursiveNode& node, const HalvingRules& rules);

/// What neighbours exchange: 16 elements for each of the slice of the tensor between them, when they cut it differently
/// in this halving and see it in the same shape. `decided`: of each node, its cut in this halving, if it has one yet.
[[nodiscard]] double exchange_cost(const RecursiveGraph& graph, std::uint32_t node, const Halving& halving,
                                   const std::vector<std::optional<Halving>>& decided);

}  // namespace hcclsim::hccl
