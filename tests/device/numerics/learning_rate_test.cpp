#include "device/numerics/learning_rate.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "tests/support/case_name.hpp"

namespace hcclsim::device {
namespace {

using testing::HasSubstr;

struct Expected {
  std::string schedule;
  std::uint64_t warm_up;
  std::vector<std::pair<std::uint64_t, double>> rates;  ///< iteration, rate for the base 0.4
};

class Table : public testing::TestWithParam<Expected> {};

TEST_P(Table, ByHand) {
  const LearningRate rate(0.4, parse_learning_rate_schedule(GetParam().schedule), GetParam().warm_up);
  for (const auto& [iteration, expected] : GetParam().rates) {
    EXPECT_NEAR(rate.at(iteration), expected, 1e-15) << GetParam().schedule << " at " << iteration;
  }
}

const double root_half = std::sqrt(0.5);

INSTANTIATE_TEST_SUITE_P(
    Schedules, Table,
    testing::Values(
        Expected{"constant", 0, {{0, 0.4}, {1, 0.4}, {1'000'000'000'000, 0.4}}},
        Expected{"constant", 4, {{0, 0.1}, {1, 0.2}, {2, 0.3}, {3, 0.4}, {4, 0.4}}},
        Expected{"constant", 1, {{0, 0.4}, {1, 0.4}}},
        Expected{"step:30:0.1", 0, {{0, 0.4}, {29, 0.4}, {30, 0.04}, {59, 0.04}, {60, 0.004}, {90, 0.0004}}},
        Expected{"step:1:0.5", 0, {{0, 0.4}, {1, 0.2}, {2, 0.1}}},
        Expected{"step:2:0.5", 4, {{0, 0.1}, {1, 0.2}, {2, 0.15}, {3, 0.2}, {4, 0.1}}},
        Expected{"step:100,200:0.1", 0, {{0, 0.4}, {99, 0.4}, {100, 0.04}, {199, 0.04}, {200, 0.004}, {9999, 0.004}}},
        Expected{
            "cosine:1000",
            0,
            {{0, 0.4}, {250, 0.2 * (1 + root_half)}, {500, 0.2}, {750, 0.2 * (1 - root_half)}, {1000, 0}, {5000, 0}}},
        Expected{"cosine:100:0.1", 0, {{0, 0.4}, {50, 0.25}, {100, 0.1}, {200, 0.1}}},
        Expected{"cosine:4", 2, {{0, 0.2}, {1, 0.2 * (1 + root_half)}, {2, 0.2}, {4, 0}}}),
    [](const auto& tested) {
      const std::string warm_up =
          tested.param.warm_up == 0 ? "" : fmt::format("_after_{}_of_warm_up", tested.param.warm_up);
      return test::case_name(tested.param.schedule + warm_up);
    });

TEST(LearningRate, NeverRisesAfterWarmUp) {
  for (const char* text : {"constant", "step:7:0.9", "step:3,5,11:0.5", "cosine:100", "cosine:90:0.01"}) {
    const LearningRate rate(0.4, parse_learning_rate_schedule(text), 10);
    for (std::uint64_t iteration = 10; iteration < 150; ++iteration) {
      EXPECT_LE(rate.at(iteration), rate.at(iteration - 1 < 10 ? 10 : iteration - 1)) << text << " at " << iteration;
    }
  }
}

std::string message_of(const std::string& text) {
  try {
    (void)parse_learning_rate_schedule(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "option");
    return error.what();
  }
  return "accepted";
}

TEST(LearningRateSchedule, RefusesOtherTexts) {
  EXPECT_EQ(message_of("linear:3"),
            "learning-rate schedule 'linear:3': unknown kind 'linear'; give constant, step:ITERATIONS:FACTOR, "
            "step:AT,AT,…:FACTOR, cosine:ITERATIONS or cosine:ITERATIONS:FLOOR");
  EXPECT_THAT(message_of(""), HasSubstr("unknown kind ''"));
  EXPECT_THAT(message_of("constant:1"), HasSubstr("constant takes nothing more"));
  EXPECT_THAT(message_of("step:30"), HasSubstr("iterations and a factor"));
  EXPECT_THAT(message_of("step:30:0.1:2"), HasSubstr("iterations and a factor"));
  EXPECT_THAT(message_of("step:0:0.1"), HasSubstr("'0' is not a number of iterations"));
  EXPECT_THAT(message_of("step:-3:0.1"), HasSubstr("'-3' is not a number of iterations"));
  EXPECT_THAT(message_of("step:3x:0.1"), HasSubstr("'3x' is not a number of iterations"));
  EXPECT_THAT(message_of("step:3,:0.1"), HasSubstr("'' is not a number of iterations"));
  EXPECT_THAT(message_of("step:200,100:0.1"), HasSubstr("iteration 100 does not come after 200"));
  EXPECT_THAT(message_of("step:5,5:0.1"), HasSubstr("iteration 5 does not come after 5"));
  EXPECT_THAT(message_of("step:30:0"), HasSubstr("factor '0' is not a number above 0"));
  EXPECT_THAT(message_of("step:30:nan"), HasSubstr("factor 'nan'"));
  EXPECT_THAT(message_of("cosine"), HasSubstr("iterations and perhaps a floor"));
  EXPECT_THAT(message_of("cosine:0"), HasSubstr("'0' is not a number of iterations"));
  EXPECT_THAT(message_of("cosine:99999999999999999999"), HasSubstr("is not a number of iterations"));
  EXPECT_THAT(message_of("cosine:10:-1"), HasSubstr("floor '-1' is not a learning rate"));
}

TEST(LearningRate, RefusesBasesThatCannotBe) {
  EXPECT_THROW(LearningRate(-0.1), Error);
  EXPECT_THROW(LearningRate(std::nan("")), Error);
  EXPECT_THROW(LearningRate(0.1, parse_learning_rate_schedule("cosine:10:0.2")), Error);
  EXPECT_NO_THROW(LearningRate(0));
}

}  // namespace
}  // namespace hcclsim::device
