#pragma once

#include <cstdint>

#include "device/numerics/computation.hpp"
#include "models/graph.hpp"
#include "tests/support/training/reference_net.hpp"

/// Compares programs with the reference network in double precision.
namespace hcclsim::device {

/// The reference's options with the same dropout masks, targets and rounding as a step of a computation.
[[nodiscard]] test::ReferenceOptions reference_options(const models::Graph& graph, const ComputationOptions& options,
                                                       const StepInput& input);

/// Expects loss and gradients of one step, with weights and samples of `seed`, to be those of the reference but for
/// the rounding of fp32.
void expect_as_reference(const models::Graph& graph, std::uint64_t seed, const ComputationOptions& options = {});

}  // namespace hcclsim::device
