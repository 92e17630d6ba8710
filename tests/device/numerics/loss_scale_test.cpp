#include "device/numerics/loss_scale.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Scales before every step; a step is '.' good, 'x' with overflow.
std::vector<float> scales(LossScaler scaler, const std::string& steps) {
  std::vector<float> found;
  for (const char step : steps) {
    SCOPED_TRACE(fmt::format("step {}", found.size()));
    found.push_back(scaler.scale());
    EXPECT_EQ(scaler.update(step == 'x'), step != 'x' || !scaler.checks_overflow());
  }
  found.push_back(scaler.scale());
  return found;
}

TEST(LossScaler, NoneAppliesEveryUpdate) {
  LossScaler scaler = LossScaler::parse("none");
  EXPECT_FALSE(scaler.checks_overflow());
  EXPECT_TRUE(scaler.update(true));
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_FALSE(LossScaler().checks_overflow());
}

TEST(LossScaler, StaticKeepsItsScaleAndAppliesEveryUpdate) {
  EXPECT_THAT(scales(LossScaler::parse("static:128"), ".xx."), ElementsAre(128, 128, 128, 128, 128));
}

TEST(LossScaler, DynamicHalvesAndDoubles) {
  EXPECT_THAT(scales(LossScaler::parse("dynamic:16:3"), "..x...xx..."),
              ElementsAre(16, 16, 16, 8, 8, 8, 16, 8, 4, 4, 4, 8));
  EXPECT_THAT(scales(LossScaler::parse("dynamic:16:1"), "..x."), ElementsAre(16, 32, 64, 32, 64));
  EXPECT_THAT(scales(LossScaler::parse("dynamic:16:2"), "....."), ElementsAre(16, 16, 32, 32, 64, 64));
}

TEST(LossScaler, DynamicStaysInItsRange) {
  EXPECT_THAT(scales(LossScaler::parse("dynamic:3:9"), "xxx"), ElementsAre(3, 1.5, 1, 1));
  EXPECT_THAT(scales(LossScaler::parse("dynamic:8.5e37:1"), ".."), ElementsAre(8.5e37F, 1.7e38F, 0x1p127F));
}

TEST(LossScaler, DefaultsAreMindSpores) {
  LossScaler scaler = LossScaler::parse("dynamic");
  EXPECT_EQ(scaler.scale(), 16777216);
  for (int step = 0; step < 1999; ++step) EXPECT_TRUE(scaler.update(false)) << step;
  EXPECT_EQ(scaler.scale(), 16777216);
  EXPECT_TRUE(scaler.update(false));
  EXPECT_EQ(scaler.scale(), 33554432);
}

TEST(LossScaler, GoesOnFromItsState) {
  LossScaler scaler = LossScaler::parse("dynamic:16:3");
  for (const bool overflow : {true, false, false}) (void)scaler.update(overflow);
  LossScaler resumed = LossScaler::parse("dynamic:16:3");
  resumed.restore(scaler.state());
  EXPECT_EQ(scales(resumed, "..x."), scales(scaler, "..x."));
  EXPECT_EQ(scales(resumed, "."), (std::vector<float>{8, 16}));
}

TEST(LossScaler, RefusesStatesOfOthers) {
  LossScaler dynamic = LossScaler::parse("dynamic:16:3");
  EXPECT_THROW(dynamic.restore({0.5F, 0}), Error);
  EXPECT_THROW(dynamic.restore({std::numeric_limits<float>::infinity(), 0}), Error);
  EXPECT_THROW(dynamic.restore({std::numeric_limits<float>::quiet_NaN(), 0}), Error);
  EXPECT_THROW(dynamic.restore({16, 3}), Error);
  LossScaler fixed = LossScaler::parse("static:128");
  EXPECT_THROW(fixed.restore({64, 0}), Error);
  EXPECT_NO_THROW(fixed.restore({128, 0}));
}

std::string message_of_scale(const std::string& text) {
  try {
    (void)LossScaler::parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "option");
    return error.what();
  }
  return "accepted";
}

TEST(LossScaler, RefusesOtherTexts) {
  EXPECT_EQ(message_of_scale("static:0.5"),
            "loss scale 'static:0.5': '0.5' is not a number from 1 to 2^127; give none, static:SCALE, dynamic, "
            "dynamic:INITIAL or dynamic:INITIAL:STEPS");
  for (const char* text : {"", "static", "none:1", "fixed:3", "static:1:2", "dynamic:1:2:3"}) {
    EXPECT_THAT(message_of_scale(text), HasSubstr("not one of the forms")) << text;
  }
  for (const char* text :
       {"static:", "static:nan", "static:1e39", "static:-2", "dynamic:", "dynamic:0", "dynamic:2x"}) {
    EXPECT_THAT(message_of_scale(text), HasSubstr("not a number from 1 to 2^127")) << text;
  }
  for (const char* text : {"dynamic:2:", "dynamic:2:0", "dynamic:2:1.5"}) {
    EXPECT_THAT(message_of_scale(text), HasSubstr("not a number of steps")) << text;
  }
}

}  // namespace
}  // namespace hcclsim::device
