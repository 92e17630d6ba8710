#include "hccl/parallel/layout/named_device_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using testing::HasSubstr;

TEST(NamedDeviceMatrix, NamesBecomeAxesCountedFromTheRight) {
  const NamedDeviceMatrix layout({2, 2, 2}, {"dp", "sp", "mp"});
  EXPECT_EQ(layout.map({{"dp"}, {"mp"}}), (TensorMap{{2}, {0}}));
  EXPECT_EQ(layout.map({{"None"}, {"sp", "dp"}}), (TensorMap{{}, {1, 2}}));
  EXPECT_EQ(layout.map({}), TensorMap{});
  EXPECT_EQ(layout.devices(), (DeviceMatrix{{2, 2, 2}}));
}

TEST(NamedDeviceMatrix, WrongNamesAreValueErrors) {
  const auto made = [](std::vector<std::uint32_t> sizes, std::vector<std::string> names) {
    return test::refusal("value-error", [&] { (void)NamedDeviceMatrix(std::move(sizes), std::move(names)); });
  };
  EXPECT_THAT(made({2, 2}, {"dp"}), HasSubstr("(2,2) has 2 axes, alias_name has 1 name"));
  EXPECT_THAT(made({2}, {""}), HasSubstr("the name ''"));
  EXPECT_THAT(made({2}, {"None"}), HasSubstr("the name 'None'"));
  EXPECT_THAT(made({2, 2}, {"dp", "dp"}), HasSubstr("two axes have the name 'dp'"));
  EXPECT_THAT(made({2, 0}, {"dp", "mp"}), HasSubstr("(2,0) does not have 1 to 4294967295 devices"));
  EXPECT_THAT(made({65536, 65536}, {"dp", "mp"}), HasSubstr("does not have 1 to"));
  const NamedDeviceMatrix layout({2, 4}, {"data", "model"});
  const auto called = [&](const std::vector<std::vector<std::string>>& axes) {
    return test::refusal("value-error", [&] { (void)layout.map(axes); });
  };
  EXPECT_THAT(called({{"modell"}}), HasSubstr("'modell'; did you mean model?; accepted: data, model, None"));
  EXPECT_THAT(called({{"data"}, {"data"}}), HasSubstr("'data' cuts twice"));
  EXPECT_THAT(called({{"data", "data"}}), HasSubstr("'data' cuts twice"));
}

}  // namespace
}  // namespace hcclsim::hccl
