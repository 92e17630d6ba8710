#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "study/run/split/problem.hpp"

namespace hcclsim::study {

/// Percentages with which HCCL's rule (hccl/parallel/segments/split.hpp) makes these cuts again, with as few decimals
/// as do, from two to six; they sum to 100. None if it makes no such cuts: among gradients of very different sizes its
/// binary search passes some of them over.
[[nodiscard]] std::optional<std::vector<double>> percentages_of(const Cuts& cuts,
                                                                std::span<const Bytes> gradient_sizes);

}  // namespace hcclsim::study
