#include "device/numerics/loops/embedding.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::array<float, 6> table{1, 2, 3, 4, 5, 6};  // three rows of two

TEST(Embedding, LooksRowsUp) {
  std::vector<float> out(6);
  look_up(table, {0, 3, 3}, std::array{2, 0, 2}, 2, out);
  EXPECT_THAT(out, ElementsAre(5, 6, 1, 2, 5, 6));
}

TEST(Embedding, AddsTheGradientsOfARowThatWasReadTwice) {
  std::vector<float> gradient(6, 9);  // what was there does not count
  look_up_gradient(std::array<float, 6>{1, 2, 3, 4, 10, 20}, {0, 3, 3}, std::array{2, 0, 2}, 2, gradient, false);
  EXPECT_THAT(gradient, ElementsAre(3, 4, 0, 0, 11, 22));
  look_up_gradient(std::array<float, 6>{1, 2, 3, 4, 10, 20}, {0, 3, 3}, std::array{2, 0, 2}, 2, gradient, true);
  EXPECT_THAT(gradient, ElementsAre(6, 8, 0, 0, 22, 44));
}

TEST(Embedding, RefusesATokenBeyondTheTable) {
  std::vector<float> out(2);
  for (const std::int32_t token : {3, -1}) {
    SCOPED_TRACE(fmt::format("token {}", token));
    try {
      look_up(table, {0, 3, 3}, std::array{token}, 2, out);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "tokens");
      EXPECT_THAT(error.what(), HasSubstr("tokens must be 0 to 2"));
    }
  }
}

TEST(Embedding, AddsPositionsToEverySequence) {
  const std::vector<float> in{10, 20, 30, 40, 50, 60, 70, 80};  // two sequences of two rows
  std::vector<float> out(8);
  const PositionTable form{.sequence = 2, .features = 2};
  add_positions(form, std::array<float, 6>{1, 2, 3, 4, 5, 6}, in, out);
  EXPECT_THAT(out, ElementsAre(11, 22, 33, 44, 51, 62, 73, 84));
  std::vector<float> gradient(6, 9);  // of a table for three positions
  add_positions_gradient(form, in, gradient);
  EXPECT_THAT(gradient, ElementsAre(60, 80, 100, 120, 0, 0));
}

TEST(Embedding, SegmentsShareARow) {
  std::vector<float> out(4);
  const PositionTable form{.sequence = 4, .features = 1, .segments = 2};
  add_positions(form, std::array<float, 2>{1, 2}, {}, out);
  EXPECT_THAT(out, ElementsAre(1, 1, 2, 2));
  std::vector<float> gradient(2);
  add_positions_gradient(form, std::array<float, 4>{1, 2, 3, 4}, gradient);
  EXPECT_THAT(gradient, ElementsAre(3, 7));
}

}  // namespace
}  // namespace hcclsim::device
