#include <gtest/gtest.h>

#include "hccl/compression/hook_steps.hpp"

namespace hcclsim::hccl {
namespace {

TEST(HookKernels, AreKnownByTheirNames) {
  EXPECT_EQ(hook_kernel_name(1, name_of(HookAction::orthogonalise_p)), "segment2:orthogonalise_p");
  for (std::uint8_t action = 0; action <= static_cast<std::uint8_t>(HookAction::spread); ++action) {
    EXPECT_TRUE(is_hook_kernel(hook_kernel_name(11, name_of(static_cast<HookAction>(action)))));
  }
  for (const char* name : {"segment:pack", "segment2", "segment2:forward", "segment2a:pack", "layer1.0:pack", "pack",
                           "segment2:", "Segment2:pack", ""}) {
    EXPECT_FALSE(is_hook_kernel(name)) << name;
  }
}

}  // namespace
}  // namespace hcclsim::hccl
