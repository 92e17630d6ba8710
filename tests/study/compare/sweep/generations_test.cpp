#include "study/compare/sweep/generations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "tests/study/compare/sweep/sample_points.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* version = "2";

SweepGrid sweep_of(const std::string& command) {
  return {.command = command, .files = {"profile"}, .version = version};
}

/// A file of this test.
std::string file_with(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "generations" / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
  return path;
}

/// What the store has of a point that was computed from the files as they are now.
StoredPoint stored(std::int64_t number, const Json& inputs, const std::string& by = version) {
  SweepGrid sweep = sweep_of("run");
  sweep.version = by;
  const Point point = PointNamer(sweep).named(inputs);
  StoredPoint result;
  result.number = number;
  result.id = point.id;
  result.command = point.command;
  result.inputs = inputs;
  result.platform_hash = point.hashes.at("platform");
  result.version = by;
  result.status = PointStatus::done;
  return result;
}

std::vector<std::string> reasons(std::vector<StoredPoint> points) {
  mark_stale(points, sweep_of);
  std::vector<std::string> found;
  for (const StoredPoint& point : points) found.push_back(point.stale);
  return found;
}

std::vector<std::int64_t> numbers_of_newest(std::vector<StoredPoint> points) {
  mark_stale(points, sweep_of);
  std::vector<std::int64_t> numbers;
  for (const StoredPoint& point : newest(std::move(points))) numbers.push_back(point.number);
  return numbers;
}

TEST(Generations, SayWhatHasChanged) {
  const Json inputs{{"platform", file_with("reasons.xml", "one")}, {"profile", file_with("profile", "one")}};
  const std::vector<StoredPoint> points{stored(1, inputs), stored(2, inputs, "1")};
  EXPECT_THAT(reasons(points), ElementsAre("", "by version 1"));
  file_with("profile", "two");
  EXPECT_THAT(reasons(points), ElementsAre("input file changed", "input file changed, by version 1"));
  file_with("reasons.xml", "two");
  EXPECT_THAT(reasons(points), ElementsAre("platform edited", "platform edited, by version 1"));
  file_with("reasons.xml", "one");
  file_with("profile", "one");
  EXPECT_THAT(reasons(points), ElementsAre("", "by version 1"));
  std::filesystem::remove(inputs["platform"].get<std::string>());
  EXPECT_THAT(reasons(points), ElementsAre("file not found", "file not found"));
}

TEST(Generations, AnEqualFileElsewhereHasTheResultAlready) {
  const Json here{{"platform", file_with("here/same.xml", "one")}};
  const Json there{{"platform", file_with("there/same.xml", "two")}};
  std::vector<StoredPoint> points{stored(1, here), stored(2, there)};
  EXPECT_THAT(numbers_of_newest(points), ElementsAre(1, 2));
  mark_stale(points, sweep_of);
  EXPECT_FALSE(can_be_refreshed(points));
  file_with("there/same.xml", "one");
  mark_stale(points, sweep_of);
  EXPECT_EQ(points[1].stale, "platform edited");
  EXPECT_FALSE(can_be_refreshed(points));
  EXPECT_THAT(numbers_of_newest(points), ElementsAre(1));
  file_with("there/same.xml", "three");
  mark_stale(points, sweep_of);
  EXPECT_TRUE(can_be_refreshed(points));
  EXPECT_THAT(numbers_of_newest(points), ElementsAre(1, 2));
}

TEST(Generations, NewestIsTheOneOfToday) {
  const std::string platform = file_with("newest.xml", "one");
  const Json eight{{"platform", platform}, {"batch", "8"}};
  const Json eight_in_other_order{{"batch", "8"}, {"platform", platform}};
  const Json sixteen{{"platform", platform}, {"batch", "16"}};
  std::vector<StoredPoint> points{stored(1, eight), stored(2, sixteen)};
  file_with("newest.xml", "two");
  points.push_back(stored(3, eight_in_other_order));
  EXPECT_THAT(numbers_of_newest(points), ElementsAre(2, 3));
  points.back().status = PointStatus::waiting;  // no result yet
  EXPECT_THAT(numbers_of_newest(points), ElementsAre(1, 2));
  points.back().status = PointStatus::done;
  file_with("newest.xml", "one");  // as it was before
  EXPECT_THAT(numbers_of_newest(points), ElementsAre(1, 2));
}

TEST(Generations, AreCountedByReason) {
  std::vector<StoredPoint> points(4);
  EXPECT_THAT(stale_text(points), IsEmpty());
  points[1].stale = "platform edited";
  points[2].stale = "by version 1";
  points[3].stale = "platform edited";
  EXPECT_EQ(stale_text(points), "3 of 4 points are stale (by version 1: 1; platform edited: 2)");
}

}  // namespace
}  // namespace hcclsim::study
