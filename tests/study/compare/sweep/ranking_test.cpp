#include "study/compare/sweep/ranking.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

StoredPoint done(std::int64_t number, const std::string& command, Json inputs, std::string_view column, double figure) {
  StoredPoint point;
  point.number = number;
  point.command = command;
  point.inputs = std::move(inputs);
  point.status = PointStatus::done;
  const auto* const place = std::find(figure_columns.begin(), figure_columns.end(), column);
  point.figures.at(static_cast<std::size_t>(place - figure_columns.begin())) = figure;
  return point;
}

/// "number of the best point/points" of each group.
std::vector<std::string> groups(const std::vector<StoredPoint>& points, const std::optional<Criterion>& criterion) {
  std::vector<std::string> text;
  for (const RankedGroup& group : ranked(points, criterion)) {
    text.push_back(fmt::format("{}/{}", group.best->number, group.points));
  }
  return text;
}

TEST(Ranking, TimesCompareWithinOneWork) {
  std::vector<StoredPoint> points{done(1, "run", {{"batch", "16"}, {"split-by-size", "60,40"}}, "step_time_s", 0.3),
                                  done(2, "run", {{"batch", "32"}, {"split-by-size", "60,40"}}, "step_time_s", 0.6),
                                  done(3, "run", {{"batch", "16"}, {"split-by-size", "90,10"}}, "step_time_s", 0.2),
                                  done(4, "run", {{"batch", "32"}, {"split-by-size", "90,10"}}, "step_time_s", 0.7),
                                  done(5, "collective", {{"collective", "allreduce"}}, "time_s", 0.01)};
  EXPECT_THAT(groups(points, {}), ElementsAre("3/2", "2/2", "5/1"));
  EXPECT_THAT(groups(points, parse_criterion("step_time_s:max")), ElementsAre("1/2", "4/2"));
  EXPECT_THAT(groups(points, parse_criterion("busbw_Bps")), IsEmpty());
  points[2].status = PointStatus::failed;
  EXPECT_THAT(groups(points, {}), ElementsAre("1/1", "2/2", "5/1"));
  points[1].stale = "platform edited";
  EXPECT_THAT(groups(points, {}), ElementsAre("1/1", "4/1", "5/1"));
}

TEST(Ranking, TimesCompareAmongAsManyNpus) {
  std::vector<StoredPoint> points{done(1, "run", {{"platform", "one"}}, "step_time_s", 0.2),
                                  done(2, "run", {{"platform", "two"}}, "step_time_s", 0.3),
                                  done(3, "run", {{"platform", "two"}, {"npus", "8"}}, "step_time_s", 0.1)};
  points[0].npus = 8;
  points[1].npus = 16;
  points[2].npus = 8;
  EXPECT_THAT(groups(points, {}), ElementsAre("3/2", "2/1"));
}

TEST(Ranking, RatesCompareAcrossSizes) {
  const std::vector<StoredPoint> runs{done(1, "run", {{"model", "vgg16"}, {"batch", "16"}}, "images_per_s", 100),
                                      done(2, "run", {{"model", "vgg16"}, {"batch", "32"}}, "images_per_s", 120),
                                      done(3, "run", {{"model", "lenet"}, {"batch", "32"}}, "images_per_s", 900)};
  EXPECT_THAT(groups(runs, parse_criterion("images_per_s")), ElementsAre("2/2", "3/1"));
  EXPECT_THAT(groups(runs, parse_criterion("images_per_s:min")), ElementsAre("1/2", "3/1"));
  const std::vector<StoredPoint> collectives{
      done(1, "collective", {{"collective", "allreduce"}, {"size", "1K"}}, "busbw_Bps", 1e9),
      done(2, "collective", {{"collective", "allreduce"}, {"size", "1M"}}, "busbw_Bps", 9e9),
      done(3, "collective", {{"collective", "allgather"}, {"size", "1M"}}, "busbw_Bps", 8e9)};
  EXPECT_THAT(groups(collectives, parse_criterion("busbw_Bps")), ElementsAre("2/2", "3/1"));
}

// A job is compared with those of as many steps and NPUs, whatever its file says beside; more goodput is better.
TEST(Ranking, JobsCompareAmongEqualTrainings) {
  std::vector<StoredPoint> points{done(1, "job", {{"job", "a.yaml"}}, "time_s", 70),
                                  done(2, "job", {{"job", "b.yaml"}, {"steps", "1000"}}, "time_s", 60),
                                  done(3, "job", {{"job", "a.yaml"}, {"steps", "500"}}, "time_s", 50),
                                  done(4, "job", {{"job", "c.yaml"}}, "time_s", 40)};
  for (StoredPoint& point : points) point.npus = point.number == 4 ? 8 : 4;
  EXPECT_THAT(groups(points, {}), ElementsAre("2/2", "3/1", "4/1"));
  const std::vector<StoredPoint> shares{done(1, "job", {{"fail", "none"}}, "goodput", 0.5),
                                        done(2, "job", {{"fail", "host server0 at 1m"}}, "goodput", 0.25)};
  EXPECT_THAT(groups(shares, parse_criterion("goodput")), ElementsAre("1/2"));
  EXPECT_FALSE(parse_criterion("restarts").more);
}

TEST(Ranking, RefusesOtherFiguresAndDirections) {
  EXPECT_FALSE(parse_criterion("step_time_s").more);
  EXPECT_TRUE(parse_criterion("algbw_Bps").more);
  EXPECT_THROW(static_cast<void>(parse_criterion("speed")), Error);
  EXPECT_THROW(static_cast<void>(parse_criterion("step_time_s:least")), Error);
  EXPECT_THROW(static_cast<void>(parse_criterion("step_time_s:")), Error);
}

}  // namespace
}  // namespace hcclsim::study
