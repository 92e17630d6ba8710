#pragma once

#include <vector>

#include "hccl/search/operator_loops.hpp"
#include "hccl/search/search_cost.hpp"

/// The strategies that an operator can have, and what each costs.
namespace hcclsim::hccl {

/// Cuts that divide the sizes of the axes and whose product divides the devices: powers of two where the number of
/// devices is one. All cuts of the first axis in ascending order, of each those of the second, …. With
/// `fully_use_devices` the product is all devices or 1. An embedding whose vocabulary is cut keeps its features whole,
/// and has its sequences whole or cut by all devices that are left.
[[nodiscard]] std::vector<Cuts> candidate_cuts(const models::Operator& op, const OperatorLoops& loops,
                                               const SearchOptions& options);

/// - Computation: the slices of all inputs; the slice of the output too where a reduced axis is cut.
/// - Communication forward: the slice of the output where a reduced axis is cut; of an embedding the slice of the tokens
///   times the features; of batch norm the slice of the input where the channels are cut.
/// - Communication of parameters, in the backward pass: the slice of each that is not cut over all devices, whose
///   gradient has to be summed.
/// - Memory: what the backward pass needs, if there is one: `needs_gradient`; parameters are among it.
/// Every part above 1 is 1 less where all devices cut the first axis of the first input: among equals data parallelism
/// wins. Messages cost what they do in practice.
[[nodiscard]] SearchCost operator_cost(const models::Operator& op, const OperatorLoops& loops, const Cuts& cuts,
                                       bool needs_gradient, const SearchOptions& options);

}  // namespace hcclsim::hccl
