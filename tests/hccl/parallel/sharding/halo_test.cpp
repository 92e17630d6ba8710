#include "hccl/parallel/sharding/halo.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using models::Border;
using testing::HasSubstr;

// The first convolution of a ResNet, its pooling, and windows that do not overlap.
TEST(Halo, BordersOfWindows) {
  EXPECT_EQ(border_of_part("conv", {.kernel = 3, .stride = 1, .padding = 1}, 56, 56, 4), (Border{1, 1}));
  EXPECT_EQ(border_of_part("conv1", {.kernel = 7, .stride = 2, .padding = 3}, 224, 112, 4), (Border{3, 2}));
  EXPECT_EQ(border_of_part("pool", {.kernel = 3, .stride = 2, .padding = 1}, 112, 56, 4), (Border{1, 0}));
  EXPECT_EQ(border_of_part("patch", {.kernel = 16, .stride = 16, .padding = 0}, 224, 14, 7), Border{});
  EXPECT_EQ(border_of_part("point", {.kernel = 1, .stride = 2, .padding = 0}, 56, 28, 4), Border{});
}

TEST(Halo, ImagesThatCannotBeCut) {
  const auto refusal = [](const models::Window& window, std::uint32_t input, std::uint32_t output,
                          std::uint32_t parts) {
    return test::refusal("strategy", [&] { (void)border_of_part("conv", window, input, output, parts); });
  };
  EXPECT_THAT(refusal({.kernel = 3, .stride = 1, .padding = 0}, 56, 54, 2), HasSubstr("conv: 56 pixels"));
  EXPECT_THAT(refusal({.kernel = 2, .stride = 2, .padding = 0}, 12, 6, 4),
              HasSubstr("must be multiples of the stride"));
  EXPECT_THAT(refusal({.kernel = 2, .stride = 2, .padding = 1}, 12, 7, 1), HasSubstr("there must be no padding"));
  EXPECT_THAT(refusal({.kernel = 7, .stride = 1, .padding = 3}, 8, 8, 4),
              HasSubstr("parts of 2 pixels are smaller than the 3 and 3 pixels that neighbours need"));
}

}  // namespace
}  // namespace hcclsim::hccl
