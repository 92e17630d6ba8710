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
/// LAMB), and the master weight if there is one.
[[nodiscard]] Bytes state_bytes_per_element(Optimizer optimizer, const Precision& precision);

/// The kernels of the update of one tensor of `elements` elements after its reduction, in launch order; their names are
/// what they do ("momentum"). A cast comes first if the gradient was communicated in another type than the optimizer's,
/// and one last if the weight is a copy of a master weight.
/// Passes over the tensor, each of one element size: SGD 3 (weight read and written, gradient read), momentum and
/// Nesterov 5 (and the velocity), Adam 7; LARS and LAMB need the norms of weight and gradient (update) before they can
/// apply the step. Of these, a weight is read and written as it is kept.
[[nodiscard]] std::vector<Kernel> update_kernels(std::uint64_t elements, Optimizer optimizer,
                                                 const Precision& precision, DataType communication);

}  // namespace hcclsim::models
