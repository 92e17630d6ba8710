#pragma once

#include <vector>

#include "hccl/strategies/costs/search_cost.hpp"
#include "hccl/strategies/searched_operator.hpp"

/// The strategies that an operator can have, and what each costs.
namespace hcclsim::hccl {

/// Parts that divide the dimensions and whose product divides the devices: powers of two where the number of devices is
/// one. All parts of the first dimension in ascending order, of each those of the second, …. With `fully_use_devices`
/// the product is all devices or 1. An embedding whose vocabulary is cut keeps its features and positions whole, and
/// has its sequences whole or cut over all devices that are left.
[[nodiscard]] std::vector<DimensionParts> candidates_of(const SearchedOperator& op, const SearchOptions& options);

/// - Computation: the slices of all inputs; the slice of the output too where it is a sum over devices.
/// - Communication forward: the slice of the output where it is a sum over devices; of batch norm the slice of the
/// input
///   where the channels are cut.
/// - Communication of parameters, in the backward pass: the slice of each that is not cut over all devices, whose
///   gradient has to be summed.
/// - Memory: what the backward pass needs, if there is one (`needs_gradient`); parameters are among it.
/// Every part above 1 is 1 less where all devices cut the first axis of the first input: among equals data parallelism
/// wins. Messages cost what they do in practice.
[[nodiscard]] SearchCost operator_cost(const SearchedOperator& op, const DimensionParts& parts, bool needs_gradient,
                                       const SearchOptions& options);

}  // namespace hcclsim::hccl
