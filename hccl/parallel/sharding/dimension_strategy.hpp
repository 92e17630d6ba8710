#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "base/units.hpp"
#include "hccl/parallel/layout/tensor_layout.hpp"
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

/// The strategy of an operator of one tensor that cuts it as it comes; nothing if it cannot be cut so.
[[nodiscard]] std::optional<OperatorStrategy> following(const Signature& signature, const TensorLayout& input);

}  // namespace hcclsim::hccl
