#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "hccl/parallel/plan/plan_walk.hpp"

namespace hcclsim::hccl {

/// What the proof of a Plan says against it; empty if it comes to its end.
inline std::string objection(const Plan& plan) {
  try {
    static_cast<void>(walk(plan));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::check_failed);
    EXPECT_EQ(error.kind(), "plan");
    return error.what();
  }
  return {};
}

}  // namespace hcclsim::hccl
