#include "study/sweep/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "tests/study/sweep/sample_points.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Access = SweepStore::Access;

std::vector<std::string> ids_of(const std::vector<Point>& points) {
  std::vector<std::string> ids;
  for (const Point& point : points) ids.push_back(point.id);
  return ids;
}

Outcome good(const std::string& id) {
  return {.id = id, .ok = true, .result = R"({"a":1})", .figures = {{"step_time_s", 0.5}}, .wall_s = 0.25};
}

std::string fault_of(const std::function<void()>& action) {
  try {
    action();
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "database");
    return error.what();
  }
}

TEST(SweepStore, KeepsWhatCameOfPoints) {
  const std::string path = new_database();
  const std::vector<Point> points = sample_points(3);
  {
    SweepStore store(path, Access::work);
    store.add(points);
    store.add(points);  // they are there
    EXPECT_TRUE(store.claim(points[0].id));
    EXPECT_FALSE(store.claim(points[0].id));
    EXPECT_TRUE(store.claim(points[1].id));
    store.finish({good(points[0].id),
                  {.id = points[1].id, .ok = false, .error = "too large", .error_kind = "memory", .exit_status = 3}});
    EXPECT_FALSE(store.claim(points[0].id));
    EXPECT_TRUE(store.claim(points[2].id));  // and given back at the end
  }
  SweepStore store(path, Access::read);
  std::vector<StoredPoint> stored;
  store.for_each([&](const StoredPoint& point) { stored.push_back(point); }, true);
  ASSERT_EQ(stored.size(), 3U);
  EXPECT_EQ(stored[0].status, PointStatus::done);
  EXPECT_EQ(stored[0].result, R"({"a":1})");
  EXPECT_EQ(stored[0].figure("step_time_s"), 0.5);
  EXPECT_EQ(stored[0].figure("time_s"), std::nullopt);
  EXPECT_EQ(stored[0].inputs, points[0].inputs);
  EXPECT_EQ(stored[1].status, PointStatus::failed);
  EXPECT_EQ(stored[1].error, "too large");
  EXPECT_EQ(stored[1].exit_status, 3);
  EXPECT_EQ(stored[2].status, PointStatus::waiting);
  const PointCounts counts = store.counts();
  EXPECT_EQ(counts.done, 1U);
  EXPECT_EQ(counts.failed, 1U);
  EXPECT_EQ(counts.waiting, 1U);
  EXPECT_FALSE(std::filesystem::exists(path + "-wal"));  // one file is left
}

TEST(SweepStore, RetriesFailedPointsOnly) {
  const std::vector<Point> points = sample_points(2);
  SweepStore store(new_database(), Access::work);
  store.add(points);
  for (const Point& point : points) EXPECT_TRUE(store.claim(point.id));
  store.finish({good(points[0].id), {.id = points[1].id, .ok = false, .error = "bad"}});
  store.retry(ids_of(points));
  EXPECT_THAT(store.statuses(ids_of(points)), ElementsAre(PointStatus::done, PointStatus::waiting));
}

TEST(SweepStore, ClaimsOfTheDeadAreVoid) {
  const std::string path = new_database();
  const std::vector<Point> points = sample_points(2);
  {
    SweepStore store(path, Access::work);
    store.add(points);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    SweepStore store(path, Access::work);
    const bool claimed = store.claim(points[0].id);
    ::kill(::getpid(), claimed ? SIGKILL : SIGTERM);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  {
    SweepStore reader(path, Access::read);
    EXPECT_THAT(reader.statuses(ids_of(points)), ElementsAre(PointStatus::running, PointStatus::waiting));
  }
  SweepStore store(path, Access::work);
  EXPECT_TRUE(store.claim(points[0].id));
}

TEST(SweepStore, ClaimsOfTheLivingHold) {
  const std::string path = new_database();
  const std::vector<Point> points = sample_points(1);
  SweepStore one(path, Access::work);
  one.add(points);
  EXPECT_TRUE(one.claim(points[0].id));
  SweepStore two(path, Access::work);
  two.keep_alive();
  EXPECT_FALSE(two.claim(points[0].id));
  one.release(ids_of(points));
  EXPECT_TRUE(two.claim(points[0].id));
}

TEST(SweepStore, MergesFinishedPoints) {
  const std::vector<Point> points = sample_points(4);
  const std::string path = new_database();
  const std::string part = path + ".part";
  std::filesystem::remove(part);
  {
    SweepStore store(part, Access::work);
    store.add({points[1], points[2], points[3]});
    for (const int i : {1, 2}) EXPECT_TRUE(store.claim(points[static_cast<std::size_t>(i)].id));
    store.finish({good(points[1].id), {.id = points[2].id, .ok = false, .error = "bad"}});
  }
  SweepStore store(path, Access::work);
  store.add({points[0], points[1]});
  EXPECT_EQ(store.merge(part), 2U);
  const std::vector<StoredPoint> merged = store.points();
  ASSERT_EQ(merged.size(), 3U);  // what waits there is not taken
  EXPECT_EQ(merged[0].status, PointStatus::waiting);
  EXPECT_EQ(merged[1].status, PointStatus::done);
  EXPECT_EQ(merged[1].figure("step_time_s"), 0.5);
  EXPECT_EQ(merged[2].error, "bad");
  EXPECT_EQ(store.merge(part), 0U);
  std::filesystem::remove(part);
}

TEST(SweepStore, SaysWhatIsWrongWithTheFile) {
  const std::string path = new_database();
  const auto work = [&] { SweepStore store(path, Access::work); };
  EXPECT_THAT(fault_of([&] { SweepStore store(path, Access::read); }), HasSubstr("there is no such file"));
  std::ofstream(path) << std::string(5000, 'x');
  EXPECT_THAT(fault_of(work), AllOf(HasSubstr(path), HasSubstr("no sweep database")));
  std::filesystem::remove(path);
  {
    const Database other(path, Database::Access::create);
    other.execute("CREATE TABLE points (a)");
  }
  EXPECT_THAT(fault_of(work), HasSubstr("this is no sweep database"));
  std::filesystem::remove(path);
  work();
  {
    const Database newer(path, Database::Access::write);
    newer.execute("PRAGMA user_version = 7");
  }
  EXPECT_THAT(fault_of(work), HasSubstr("version 7, this hcclsim knows 1"));
  EXPECT_THAT(fault_of([] { SweepStore store("/nowhere/at/all.db", Access::work); }), HasSubstr("cannot be opened"));
}

TEST(SweepStore, SaysThatAFileIsDamagedAndChangesNothing) {
  const std::string path = new_database();
  const std::vector<Point> points = sample_points(400);
  {
    SweepStore store(path, Access::work);
    store.add(points);
  }
  const auto size = std::filesystem::file_size(path);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8192);
    const std::string noise(size - 8192, '\xee');
    file << noise;
  }
  EXPECT_THAT(fault_of([&] {
                SweepStore store(path, Access::work);
                store.add(points);
                static_cast<void>(store.points());
              }),
              HasSubstr("damaged"));
  EXPECT_EQ(std::filesystem::file_size(path), size);
}

}  // namespace
}  // namespace hcclsim::study
