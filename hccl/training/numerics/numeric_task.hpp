#pragma once

#include <cstdint>
#include <vector>

#include "hccl/parallel/plan.hpp"

/// A Plan as work with real numbers. A replica computes forward and backward of a micro-batch at once, so the first
/// block of its kernels stands for all; communication, checks and updates keep their order. What can be done together,
/// because it follows each other, is one.
namespace hcclsim::hccl {

struct NumericTask {
  enum class Kind : std::uint8_t {
    compute,  ///< forward and backward; items: the micro-batch
    reduce,   ///< allreduces of gradients; items: segments
    check,    ///< are the reduced gradients finite? no items
    update,   ///< items: gradients, production order
  };
  Kind kind = Kind::compute;
  std::vector<std::uint32_t> items{};
};

/// Of one step. Throws Error(bad_input, "numerics") for a Plan that real numbers cannot follow: of several roles, or
/// whose program communicates.
[[nodiscard]] std::vector<NumericTask> numeric_tasks(const Plan& plan);

}  // namespace hcclsim::hccl
