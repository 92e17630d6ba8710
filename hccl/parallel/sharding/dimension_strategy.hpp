#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "base/units.hpp"
#include "hccl/parallel/sharding/signature.hpp"
#include "hccl/parallel/sharding/strategy.hpp"

/// Strategies that say what is cut by the names of an operator's dimensions.
namespace hcclsim::hccl {

/// The strategy that cuts dimensions, by their names, everywhere they occur, and nothing else. Names that the operator
/// does not have do not count.
[[nodiscard]] OperatorStrategy strategy_of(const Signature& signature,
                                           const std::map<std::string_view, std::uint32_t>& cuts);

/// Batch parallel: the batch in as many parts as it and the devices have in common.
[[nodiscard]] OperatorStrategy batch_parallel(const Signature& signature, Rank devices);

}  // namespace hcclsim::hccl
