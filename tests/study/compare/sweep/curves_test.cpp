#include "study/compare/sweep/curves.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

StoredPoint at(Json inputs, double step, double images = 0) {
  StoredPoint point;
  point.command = "run";
  point.inputs = std::move(inputs);
  point.status = PointStatus::done;
  point.figures = {step, images};
  return point;
}

/// Two batches, two splits; the last is not done.
std::vector<StoredPoint> square() {
  std::vector<StoredPoint> points{
      at({{"batch", "32"}, {"split", "60,40"}}, 3, 30), at({{"batch", "32"}, {"split", "9,91"}}, 2, 40),
      at({{"batch", "8"}, {"split", "60,40"}}, 1, 20), at({{"batch", "8"}, {"split", "9,91"}}, 0)};
  points.back().status = PointStatus::waiting;
  points.back().figures = {};
  return points;
}

TEST(FigureMap, HasNumbersAscendingAndTheBestOfEachWork) {
  const FigureMap map = map_of(square(), {"step_time_s", false}, "batch", "", "d");
  EXPECT_EQ(map.across, "split");
  EXPECT_THAT(map.columns, ElementsAre("9,91", "60,40"));
  EXPECT_THAT(map.rows, ElementsAre("8", "32"));
  EXPECT_TRUE(std::isnan(map.figures[0][0]));
  EXPECT_EQ(map.figures[0][1], 1);
  EXPECT_THAT(map.figures[1], ElementsAre(2, 3));
  EXPECT_THAT(map.best, ElementsAre(Pair(1, 0), Pair(0, 1)));  // one of batch 32, one of batch 8
  EXPECT_THAT(map_of(square(), {"images_per_s", true}, "split", "batch", "d").best, ElementsAre(Pair(0, 1)));
}

TEST(FigureMap, AStalePointIsNeverTheBest) {
  std::vector<StoredPoint> points = square();
  points[1].stale = "platform edited";
  EXPECT_THAT(map_of(points, {"images_per_s", true}, "split", "", "d").best, ElementsAre(Pair(1, 1)));
}

TEST(FigureMap, RefusesWhatHasNotTwoInputs) {
  const auto message = [](std::vector<StoredPoint> points, const std::string& down, const std::string& across) {
    return test::refusal("sweep", [&] {
      static_cast<void>(map_of(std::move(points), {"step_time_s", false}, down, across, "d"));
    });
  };
  EXPECT_THAT(message(square(), "seed", ""), HasSubstr("d: seed does not vary; inputs that do: batch, split"));
  EXPECT_THAT(message(square(), "batch", "batch"), HasSubstr("batch cannot be both down and across"));
  std::vector<StoredPoint> points = square();
  keep_points_at("batch", "32", points, "d");
  EXPECT_EQ(points.size(), 2U);
  EXPECT_THAT(message(points, "split", ""), HasSubstr("only split varies"));
  points = square();
  points[0].inputs["model"] = "lenet";
  EXPECT_THAT(message(points, "batch", "split"), HasSubstr("model vary beside batch and split"));
  EXPECT_THAT(test::refusal("sweep", [&] { keep_points_at("batch", "33", points, "d"); }),
              HasSubstr("no point has batch=33; values that there are: 8; 32"));
}

TEST(Geometric, FactorsVaryLessThanSteps) {
  EXPECT_TRUE(is_geometric({1024, 16384, 262144}));
  EXPECT_TRUE(is_geometric({64, 1, 8, 512}));
  EXPECT_FALSE(is_geometric({60, 70, 80, 90}));
  EXPECT_FALSE(is_geometric({0, 1, 10}));
  EXPECT_FALSE(is_geometric({1, 1000}));
}

}  // namespace
}  // namespace hcclsim::study
