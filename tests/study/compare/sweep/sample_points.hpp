#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "study/compare/sweep/point.hpp"

/// Points without a simulation behind them, for tests of sweeps.
namespace hcclsim::study {

inline std::vector<Point> sample_points(int count, const std::string& group = "one") {
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) {
    Point point{.command = "run", .inputs = Json{{"batch", fmt::format("{}", i)}}, .version = "1", .group = group};
    point.files["platform"] = "/somewhere/" + group + ".xml";
    point.hashes["platform"] = content_hash(group);
    point.id = point_id(point);
    points.push_back(point);
  }
  return points;
}

/// A path for a database of this test that does not exist.
inline std::string new_database() {
  const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = fmt::format("{}{}-{}.db", testing::TempDir(), test->test_suite_name(), test->name());
  for (const char* const suffix : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(path + suffix);
  return path;
}

}  // namespace hcclsim::study
