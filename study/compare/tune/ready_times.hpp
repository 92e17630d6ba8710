#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/program.hpp"
#include "device/skew.hpp"

/// When the gradients of a step are ready, seconds since fp_start in production order, under other circumstances than
/// those of one simulated step. Kernels follow each other without a gap, as they do on the device.
namespace hcclsim::study {

/// End of the forward pass; 0 if the program has no forward kernels.
[[nodiscard]] Seconds forward_end(const models::Program& program);

/// With the factors that `skew` gives the kernels of iteration `draw`, when the last of the NPUs has each gradient: an
/// allreduce needs all of them. All begin at once.
[[nodiscard]] std::vector<Seconds> jittered_ready(const models::Program& program, const device::Skew& skew, Rank npus,
                                                  std::uint32_t draw);

/// The backward pass in proportion to weights, of which gradient i is the cause of weights[i]: it takes the same time
/// in all, the last gradient is ready at `end`. It begins at `begin`. Empty if all weights are 0.
[[nodiscard]] std::vector<Seconds> ready_in_proportion(std::span<const double> weights, Seconds begin, Seconds end);

/// Floating-point operations of the backward pass between the gradient before and each gradient; zeros if the program,
/// a measured profile, does not tell.
[[nodiscard]] std::vector<double> backward_flops(const models::Program& program);

/// The forward pass of what each gradient belongs to, in proportion to its backward pass; their sum is the forward
/// pass. Empty if either is not known.
[[nodiscard]] std::vector<Seconds> forward_times(const models::Program& program, std::span<const Seconds> ready);

}  // namespace hcclsim::study
