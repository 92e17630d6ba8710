#include "hccl/parallel/layout/strategy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
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
  EXPECT_THAT(made({2, 2}, {"dp"}), HasSubstr("(2,2) has 2 axes, alias_name has 1 names"));
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

TEST(Strategy, OfLayouts) {
  const NamedDeviceMatrix layout({2, 4}, {"dp", "mp"});
  const Strategy strategy =
      strategy_of({layout.devices(), {layout.map({{"dp"}, {"None"}}), layout.map({{"None"}, {"dp", "mp"}})}, {}});
  EXPECT_EQ(strategy.inputs, (std::vector<Cuts>{{2, 1}, {1, 8}}));
  EXPECT_TRUE(strategy.outputs.empty());
  EXPECT_THAT(test::refusal("runtime-error",
                            [] {
                              (void)strategy_of({DeviceMatrix{{2}}, {TensorMap{{1}}}, {}});
                            }),
              HasSubstr("axis 1"));
}

TEST(Strategy, GeneralRules) {
  const StrategyRules product{.name = "matmul",
                              .inputs = {{64, 48}, {48, 96}},
                              .outputs = {{64, 96}},
                              .devices = 8,
                              .device_num = 16,
                              .takes_out_strategy = true,
                              .takes_layouts = true};
  check_strategy({{{2, 4}, {4, 1}}}, product);
  check_strategy({{{2, 4}, {4, 1}}, {{8, 1}}}, product);
  const auto message = [&](const Strategy& strategy, const StrategyRules& rules) {
    return test::refusal("runtime-error", [&] { check_strategy(strategy, rules); });
  };
  EXPECT_THAT(message({{{2, 4}}}, product), HasSubstr("matmul: its strategy is for 1 inputs, it has 2"));
  EXPECT_THAT(message({{{2, 4}, {4}}}, product),
              HasSubstr("matmul: the strategy (4) of input 1 has 1 cuts; the tensor 48x96 has 2 axes"));
  EXPECT_THAT(message({{{2, 0}, {4, 1}}}, product), HasSubstr("has a cut below 1"));
  EXPECT_THAT(message({{{2, 32}, {4, 1}}}, product), HasSubstr("does not divide axis 1 of the tensor 64x48"));
  EXPECT_THAT(message({{{1, 3}, {3, 1}}}, product), HasSubstr("with 16 devices each must be a power of two"));
  EXPECT_THAT(message({{{2, 4}, {4, 1}}, {{8}}}, product), HasSubstr("of output 0 has 1 cuts"));
  StrategyRules other = product;
  other.device_num = 12;
  check_strategy({{{1, 3}, {3, 1}}}, other);
  other.takes_out_strategy = false;
  EXPECT_THAT(message({{{2, 4}, {4, 1}}, {{8, 1}}}, other), HasSubstr("takes no out_strategy"));
}

TEST(Strategy, LayoutsUseAllDevicesOfAStage) {
  const NamedDeviceMatrix layout({2, 4}, {"dp", "mp"});
  const Strategy strategy = strategy_of({layout.devices(), {layout.map({{"dp"}, {"mp"}})}, {}});
  StrategyRules rules{.name = "relu", .inputs = {{8, 8}}, .devices = 8, .device_num = 8, .takes_layouts = true};
  check_strategy(strategy, rules);
  const auto message = [&] { return test::refusal("runtime-error", [&] { check_strategy(strategy, rules); }); };
  rules.devices = 16;
  EXPECT_THAT(message(), HasSubstr("the device matrix (2,4) has 8 devices, a stage has 16"));
  rules.takes_layouts = false;
  EXPECT_THAT(message(), HasSubstr("relu takes cuts, no layouts"));
}

}  // namespace
}  // namespace hcclsim::hccl
