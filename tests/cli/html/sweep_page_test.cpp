#include "cli/html/pages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace hcclsim::cli {
namespace {

using study::PointStatus;
using study::StoredPoint;

StoredPoint point(const char* batch, const char* split, PointStatus status, double step = 0) {
  StoredPoint made;
  made.command = "run";
  made.version = "0.1.0";
  made.inputs = {{"model", "resnet50"}, {"batch", batch}, {"split-by-size", split}};
  made.status = status;
  if (status == PointStatus::done) made.figures = {step, 256 / step};
  if (status == PointStatus::failed) made.error = "HBM exceeded";
  return made;
}

std::vector<StoredPoint> four_points() {
  return {point("16", "50,50", PointStatus::done, 0.5), point("16", "60,40", PointStatus::done, 0.25),
          point("32", "50,50", PointStatus::failed), point("32", "60,40", PointStatus::waiting)};
}

TEST(SweepPage, NamesWhatWasVariedAndWhatWasFound) {
  const Json data = sweep_data(four_points());
  EXPECT_EQ(data["axes"], Json::parse(R"([
      {"name": "batch", "values": ["16", "32"], "numbers": [16.0, 32.0], "geometric": false},
      {"name": "split-by-size", "values": ["50,50", "60,40"], "numbers": [50.0, 60.0],
       "geometric": false}])"));
  ASSERT_EQ(data["metrics"].size(), 2U);  // no point has the others
  EXPECT_EQ(data["metrics"][0]["key"], "step_time_s");
  EXPECT_EQ(data["metrics"][1]["more"], true);
  EXPECT_EQ(data["metrics"][0]["works"], Json::parse("[0, 0, 1, 1]"));  // times compare within a batch
  EXPECT_EQ(data["metrics"][1]["works"], Json::parse("[0, 0, 0, 0]"));
  EXPECT_EQ(data["points"], Json::parse(R"([["done", [0, 0], [0.5, 512.0]], ["done", [0, 1], [0.25, 1024.0]],
                                                    ["failed", [1, 0], [null, null], "HBM exceeded"],
                                                    ["waiting", [1, 1], [null, null]]])"));
}

TEST(SweepPage, SaysWhichPointsAreStale) {
  std::vector<StoredPoint> points = four_points();
  points[1].stale = "platform edited";
  points[2].stale = "version";
  const Json rows = sweep_data(points)["points"];
  EXPECT_EQ(rows[1], Json::parse(R"(["done", [0, 1], [0.25, 1024.0], null, "platform edited"])"));
  EXPECT_EQ(rows[2], Json::parse(R"(["failed", [1, 0], [null, null], "HBM exceeded", "version"])"));
}

TEST(SweepPage, HoldsTheCommandOfTheBestPointAndWhatAllHaveInCommon) {
  const std::string page =
      sweep_page(four_points(), "folder/points.db", {.path = "", .title = "", .command = "hcclsim"});
  EXPECT_NE(page.find("hcclsim run --model resnet50 --batch 16 --split-by-size 60,40"), std::string::npos);
  EXPECT_NE(page.find(R"(["Database","points.db"])"), std::string::npos);
  EXPECT_NE(page.find(R"(["model","resnet50"])"), std::string::npos);
  EXPECT_NE(page.find("Sweep of 4 points"), std::string::npos);
}

TEST(SweepPage, EachKindOfWorkHasItsBestPoint) {
  std::vector<StoredPoint> points = four_points();
  points[3] = point("32", "60,40", PointStatus::done, 0.75);
  const std::string page = sweep_page(points, "points.db", {.path = "", .title = "", .command = "hcclsim"});
  const std::string command = "hcclsim run --model resnet50 --batch ";
  const Json best = Json::array({{{"point", 1}, {"of", 2}, {"command", command + "16 --split-by-size 60,40"}},
                                 {{"point", 3}, {"of", 1}, {"command", command + "32 --split-by-size 60,40"}}});
  EXPECT_NE(page.find("\"best\":" + best.dump()), std::string::npos);
}

TEST(SweepPage, CommandsAreAnAxisIfThereAreSeveral) {
  std::vector<StoredPoint> points = four_points();
  points[3].command = "collective";
  points[3].inputs = {{"collective", "allreduce"}};
  const Json data = sweep_data(points);
  EXPECT_EQ(data["axes"].size(), 5U);
  EXPECT_EQ(data["points"][3][1].size(), 5U);
}

TEST(SweepPage, WithoutAnyFigureThereIsNoBest) {
  const std::string page = sweep_page({point("16", "50,50", PointStatus::failed)}, "points.db", {});
  EXPECT_NE(page.find(R"("best":[])"), std::string::npos);
}

TEST(SweepPage, RefusesADatabaseWithoutPoints) {
  try {
    static_cast<void>(sweep_page({}, "points.db", {}));
    FAIL() << "an empty page";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_THAT(error.what(), testing::HasSubstr("points.db holds no points"));
  }
}

}  // namespace
}  // namespace hcclsim::cli
