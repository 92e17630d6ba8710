#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "models/lowering/kernel.hpp"
#include "models/lowering/precision.hpp"

/// The optimizer as kernels: what one parameter tensor's update reads and writes.
namespace hcclsim::models {

enum class Optimizer : std::uint8_t { sgd, momentum, nesterov, adam, adamw, lars, lamb };

[[nodiscard]] std::string_view name_of(Optimizer optimizer);
/// Inverse of name_of; throws Error(bad_input) that lists the accepted names.
[[nodiscard]] Optimizer parse_optimizer(std::string_view name);

/// Bytes of optimizer state per element of a parameter: velocity (momentum, Nesterov, LARS), two moments (Adam, AdamW,
/// LAMB).
[[nodiscard]] Bytes state_bytes_per_element(Optimizer optimizer, Amp amp);

/// The kernels of the update of one tensor of `elements` elements after its reduction, in launch order; their names are
/// what they do ("momentum"). A cast comes first if the gradient was communicated in another type than master_type().
/// Passes over the tensor, each of one element size: SGD 3 (weight read and written, gradient read), momentum and
/// Nesterov 5 (and the velocity), Adam 7; LARS and LAMB need the norms of weight and gradient (update) before they can
/// apply the step.
[[nodiscard]] std::vector<Kernel> update_kernels(std::uint64_t elements, Optimizer optimizer, Amp amp,
                                                 DataType communication);

}  // namespace hcclsim::models
