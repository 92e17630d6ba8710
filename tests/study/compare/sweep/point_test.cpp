#include "study/compare/sweep/point.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "tests/study/compare/sweep/sample_points.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;

Point sample() {
  Point point{.command = "run", .inputs = Json{{"model", "resnet50"}, {"batch", "32"}}, .version = "1.0"};
  point.files["platform"] = "/a/atlas.xml";
  point.hashes["platform"] = content_hash("<platform/>");
  return point;
}

TEST(Point, ContentHashIsTheNamedUuidOfItsSpace) {
  // A UUID of version 5: SHA-1 of the name space's 16 bytes and the name, by any other program.
  EXPECT_EQ(content_hash(""), "d2494fd9-ebfa-563e-8c2a-db77bba3f2dd");
  EXPECT_EQ(content_hash("<platform/>"), "2e055d19-7cc7-5ec5-a830-7f98637e001c");
}

TEST(Point, NameIsStable) { EXPECT_EQ(point_id(sample()), "1a507309-0372-5eb2-9f3e-8a544b33a9a9"); }

TEST(Point, NameDoesNotDependOnOrderOrFolder) {
  Point other = sample();
  other.inputs = Json{{"batch", "32"}, {"model", "resnet50"}};
  other.files["platform"] = "/b/c/atlas.xml";
  EXPECT_EQ(point_id(other), point_id(sample()));
}

TEST(Point, NameDependsOnAllElse) {
  std::set<std::string> names{point_id(sample())};
  const auto add = [&](auto change) {
    Point point = sample();
    change(point);
    EXPECT_TRUE(names.insert(point_id(point)).second);
  };
  add([](Point& point) { point.command = "collective"; });
  add([](Point& point) { point.version = "1.1"; });
  add([](Point& point) { point.inputs["batch"] = "33"; });
  add([](Point& point) { point.inputs["amp"] = "O0"; });
  add([](Point& point) { point.files["platform"] = "/a/other.xml"; });
  add([](Point& point) { point.hashes["platform"] = content_hash("<platform></platform>"); });
  add([](Point& point) {
    point.inputs["gradients"] = "g.csv";
    point.files["gradients"] = "g.csv";
    point.hashes["gradients"] = content_hash("1");
  });
  add([](Point& point) {
    point.inputs["gradients"] = "g.csv";
    point.files["gradients"] = "g.csv";
    point.hashes["gradients"] = content_hash("2");
  });
}

TEST(Point, WhatStandsBehindTheCommandComesFirst) {
  const Json job{{"steps", "10"}, {"job", "my job.yaml"}, {"gang", "true"}, {"fail", "worker-1 exit 1 at 5s"}};
  EXPECT_EQ(command_line("job", job), "hcclsim job 'my job.yaml' --steps 10 --gang --fail 'worker-1 exit 1 at 5s'");
  EXPECT_EQ(command_line("collective", {{"size", "1K"}, {"collective", "allreduce"}}),
            "hcclsim collective allreduce --size 1K");
}

TEST(Point, ShardsTogetherAreTheWhole) {
  const std::vector<Point> points = sample_points(1000);
  for (const std::uint32_t count : {1U, 2U, 3U, 8U, 50U}) {
    SCOPED_TRACE(fmt::format("{} parts", count));
    std::size_t total = 0;
    std::set<std::string> seen;
    for (std::uint32_t index = 1; index <= count; ++index) {
      std::size_t size = 0;
      for (const Point& point : points) {
        if (!belongs(point.id, {index, count})) continue;
        ++size;
        EXPECT_TRUE(seen.insert(point.id).second);
      }
      EXPECT_GT(size, 1000 / count / 4) << "part " << index;  // about equal
      total += size;
    }
    EXPECT_EQ(total, points.size());
  }
}

TEST(Point, ParsesShards) {
  EXPECT_EQ(parse_shard("2/8").index, 2U);
  EXPECT_EQ(parse_shard("2/8").count, 8U);
  for (const char* const text : {"", "2", "0/8", "9/8", "2/", "/8", "2/8/1", "-1/8", "a/b", "2/0"}) {
    EXPECT_THROW(static_cast<void>(parse_shard(text)), Error) << text;
  }
}

TEST(Point, VaryingAxes) {
  const Json one{{"model", "a"}, {"batch", "1"}, {"amp", "O2"}};
  const Json two{{"model", "a"}, {"batch", "2"}, {"input", "64"}};
  EXPECT_THAT(varying_axes({&one, &two}), ElementsAre("batch", "amp", "input"));
  EXPECT_THAT(varying_axes({&one, &one}), ElementsAre());
}

TEST(Point, AxisNumbers) {
  using Texts = std::vector<std::string>;
  using Numbers = std::vector<double>;
  EXPECT_EQ(axis_numbers(Texts{"20GBps", "5GBps"}), (Numbers{20, 5}));
  EXPECT_EQ(axis_numbers(Texts{"80,20", "60,40"}), (Numbers{80, 60}));
  EXPECT_EQ(axis_numbers(Texts{"0.5", "-1"}), (Numbers{0.5, -1}));
  EXPECT_EQ(axis_numbers(Texts{"1K", "512K", "1M", "1G"}), (Numbers{1024, 524288, 1048576, 1073741824}));
  EXPECT_EQ(axis_numbers(Texts{"512", "1k", "2m"}), (Numbers{512, 1024, 2097152}));
  EXPECT_EQ(axis_numbers(Texts{"1KiB", "1MB"}), (Numbers{1024, 1e6}));
  EXPECT_EQ(axis_numbers(Texts{"800MBps", "1GBps", "16Gbps"}), (Numbers{8e8, 1e9, 2e9}));
  EXPECT_EQ(axis_numbers(Texts{"500ms", "2s", "1m"}), (Numbers{0.5, 2, 60}));
  EXPECT_EQ(axis_numbers(Texts{"1K", "1024"}), std::nullopt);  // one place for two values
  EXPECT_EQ(axis_numbers(Texts{"80,20", "80,10,10"}), std::nullopt);
  EXPECT_EQ(axis_numbers(Texts{"1s", "1GBps"}), std::nullopt);
  EXPECT_EQ(axis_numbers(Texts{"ring", "8"}), std::nullopt);
}

}  // namespace
}  // namespace hcclsim::study
