#include "study/compare/sweep/store.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "tests/study/compare/sweep/sample_points.hpp"

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
  for (const Point& point : points) EXPECT_TRUE(store.claim(point.id)) << point.id;
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
  two.void_claims_of_the_dead();
  EXPECT_FALSE(two.claim(points[0].id));
  one.release(ids_of(points));
  EXPECT_TRUE(two.claim(points[0].id));
}

TEST(SweepStore, WhoWasSilentTooLongEntersAgain) {
  const std::string path = new_database();
  const std::vector<Point> points = sample_points(2);
  SweepStore silent(path, Access::work);
  silent.add(points);
  EXPECT_TRUE(silent.claim(points[0].id));
  const Database other(path, Database::Access::write);
  other.execute("DELETE FROM sweeps; UPDATE points SET status = 'waiting', owner = NULL");  // it is taken for dead
  SweepStore two(path, Access::work);
  EXPECT_TRUE(two.claim(points[0].id));
  silent.keep_alive();
  EXPECT_TRUE(silent.claim(points[1].id));
  two.void_claims_of_the_dead();
  EXPECT_FALSE(two.claim(points[1].id));
  silent.release(ids_of(points));  // the first one is no longer its own
  EXPECT_THAT(two.statuses(ids_of(points)), ElementsAre(PointStatus::running, PointStatus::waiting));
}

/// Enters a process of another machine, or of this one, with a claim on a point.
void enter_other(const std::string& path, const std::string& boot_id, double silent_s) {
  const Database database(path, Database::Access::write);
  database.execute(
      fmt::format("INSERT INTO sweeps (id, host, boot_id, pid, started, heartbeat_s) "
                  "SELECT 7, host, '{}', pid + 1000000, started, unixepoch() - {} FROM sweeps LIMIT 1;"
                  "UPDATE points SET status = 'running', owner = 7",
                  boot_id.empty() ? "' || boot_id || '" : boot_id, silent_s));
}

TEST(SweepStore, ProcessesOfOtherMachinesLiveWhileTheyAreHeardOf) {
  struct Case {
    std::string boot_id;  ///< empty: that of this machine
    double silent_s;
    bool alive;
  };
  // The host's name does not matter: two machines may have the same.
  for (const Case& each : {Case{"another", 200, true}, Case{"another", 400, false}, Case{"", 0, false}}) {
    SCOPED_TRACE(fmt::format("boot '{}', silent for {} s", each.boot_id, each.silent_s));
    const std::string path = new_database();
    const std::vector<Point> points = sample_points(1);
    SweepStore store(path, Access::work);
    store.add(points);
    enter_other(path, each.boot_id, each.silent_s);
    EXPECT_EQ(store.counts().running, each.alive ? 1U : 0U);  // nothing has been made of it yet
    EXPECT_EQ(store.counts().waiting, each.alive ? 0U : 1U);
    store.void_claims_of_the_dead();
    EXPECT_EQ(store.claim(points[0].id), !each.alive);
  }
}

TEST(SweepStore, LooksForTheDeadWithoutWriting) {
  const std::string path = new_database();
  SweepStore store(path, Access::work);
  store.add(sample_points(1));
  const auto size = std::filesystem::file_size(path + "-wal");
  for (int i = 0; i < 100; ++i) store.void_claims_of_the_dead();
  EXPECT_EQ(std::filesystem::file_size(path + "-wal"), size);
}

TEST(SweepStore, SharedFilesHaveNoWriteAheadLog) {
  const std::string path = new_database();
  const std::vector<Point> points = sample_points(1);
  const auto journal = [&] {
    const Database database(path, Database::Access::read);
    Statement mode(database, "PRAGMA journal_mode");
    return mode.step() ? mode.text(0) : std::string();
  };
  {
    SweepStore store(path, Access::share);
    store.add(points);
    EXPECT_EQ(journal(), "delete");
    EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
  }
  // What a process of this machine left in a log when it was killed comes into the file.
  const pid_t child = ::fork();
  if (child == 0) {
    SweepStore store(path, Access::work);
    if (store.claim(points[0].id)) store.finish({good(points[0].id)});
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(std::filesystem::exists(path + "-wal"));
  SweepStore store(path, Access::share);
  EXPECT_EQ(journal(), "delete");
  EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
  EXPECT_THAT(store.statuses(ids_of(points)), ElementsAre(PointStatus::done));
}

TEST(SweepStore, ReadsWhatWasKilledInTheMiddleOfAChange) {
  const std::string path = new_database();
  { SweepStore(path, Access::share).add(sample_points(3)); }
  const pid_t child = ::fork();
  if (child == 0) {
    const Database half(path, Database::Access::write);
    half.execute(
        "PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE points SET status = 'done', result = zeroblob(100000)");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  ASSERT_TRUE(std::filesystem::exists(path + "-journal"));
  EXPECT_EQ(SweepStore(path, Access::read).counts().waiting, 3U);
}

TEST(SweepStore, KnowsFileSystemsOfOneMachine) {
  EXPECT_TRUE(is_local_file_system(0xef53));       // ext4
  EXPECT_TRUE(is_local_file_system(0x58465342));   // XFS
  EXPECT_FALSE(is_local_file_system(0x6969));      // NFS
  EXPECT_FALSE(is_local_file_system(0x0bd00bd0));  // Lustre
  EXPECT_FALSE(is_local_file_system(0xff534d42));  // CIFS
  EXPECT_FALSE(is_local_file_system(0x65735546));  // FUSE
  EXPECT_EQ(journal_on_file_system_of("/proc/self/x.db"), Journal::rollback);
}

TEST(SweepStore, AChangeOfTheJournalWaitsForWriters) {
  const std::string path = new_database();
  const Database writer(path, Database::Access::create);
  writer.execute("CREATE TABLE t (a); BEGIN IMMEDIATE");
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    writer.execute("COMMIT");
  });
  EXPECT_EQ(fault_of([&] { Database(path, Database::Access::write).set_journal(Journal::write_ahead); }), "");
  ends.join();
}

/// Eight processes that open, fill, use and close one database again and again.
TEST(SweepStore, StandsManyProcessesAtOnce) {
  constexpr std::size_t processes = 8;
  constexpr std::size_t rounds = 50;
  const std::string path = new_database();
  const std::vector<Point> points = sample_points(static_cast<int>(processes * rounds));
  std::vector<pid_t> children;
  for (std::size_t number = 0; number < processes; ++number) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    try {
      for (std::size_t round = 0; round < rounds; ++round) {
        SweepStore store(path, Access::work);
        const Point& point = points[number * rounds + round];
        store.add({point});
        if (store.claim(point.id)) store.finish({good(point.id)});
        static_cast<void>(SweepStore(path, Access::read).counts());
      }
      ::_exit(0);
    } catch (const Error& error) {
      fmt::print(stderr, "{}\n", error.what());
      ::_exit(1);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(SweepStore(path, Access::read).counts().done, points.size());
}

TEST(SweepStore, MergesFinishedPoints) {
  const std::vector<Point> points = sample_points(4);
  const std::string path = new_database();
  const std::string part = path + ".part";
  std::filesystem::remove(part);
  {
    SweepStore store(part, Access::work);
    store.add({points[1], points[2], points[3]});
    for (const int i : {1, 2}) EXPECT_TRUE(store.claim(points[static_cast<std::size_t>(i)].id)) << "point " << i;
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
  EXPECT_THAT(fault_of([&] { store.merge(path); }), HasSubstr("is not merged into itself"));
  std::filesystem::remove(part);
}

// Databases of earlier versions have fewer figures.
TEST(SweepStore, AddsTheFiguresThatAFileLacks) {
  const std::vector<Point> points = sample_points(3);
  const std::string path = new_database();
  const std::string old = path + ".old";
  std::filesystem::remove(old);
  {
    SweepStore store(old, Access::work);
    store.add(points);
    EXPECT_TRUE(store.claim(points[0].id));
    store.finish({good(points[0].id)});
  }
  {
    const Database database(old, Database::Access::write);
    database.execute("ALTER TABLE points DROP COLUMN goodput; ALTER TABLE points DROP COLUMN restarts");
  }
  const std::vector<StoredPoint> read = SweepStore(old, Access::read).points();
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[0].figure("step_time_s"), 0.5);
  EXPECT_EQ(read[0].figure("goodput"), std::nullopt);
  EXPECT_EQ(SweepStore(path, Access::work).merge(old), 1U);
  EXPECT_EQ(SweepStore(path, Access::read).points()[0].figure("step_time_s"), 0.5);
  {
    SweepStore store(old, Access::work);
    EXPECT_TRUE(store.claim(points[1].id));
    Outcome outcome = good(points[1].id);
    outcome.figures = {{"goodput", 0.75}, {"restarts", 2}};
    store.finish({outcome});
  }
  const std::vector<StoredPoint> written = SweepStore(old, Access::read).points();
  EXPECT_EQ(written[0].figure("goodput"), std::nullopt);
  EXPECT_EQ(written[1].figure("goodput"), 0.75);
  EXPECT_EQ(written[1].figure("restarts"), 2);
  std::filesystem::remove(old);
}

TEST(SweepStore, SaysWhatIsWrongWithTheFile) {
  const std::string path = new_database();
  const auto work = [&] { SweepStore store(path, Access::work); };
  EXPECT_THAT(fault_of([&] { SweepStore store(path, Access::read); }), HasSubstr("there is no such file"));
  std::ofstream(path) << "";
  EXPECT_THAT(fault_of([&] { SweepStore store(path, Access::read); }), HasSubstr("the file is empty"));
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
