#include "study/compare/sweep/runner.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "tests/study/compare/sweep/sample_points.hpp"

namespace hcclsim::study {
namespace {

using Access = SweepStore::Access;

/// A compute that says what batch it had.
ComputePoint plain(const Point& /*first*/) {
  return {[](const Point& point) {
    const auto batch = point.inputs["batch"].get<std::string>();
    return Computed{"{\"batch\":" + batch + "}", {{"step_time_s", std::stod(batch)}}};
  }};
}

const RunnerOptions four_jobs{.jobs = 4, .stop = [] { return false; }, .progress = [](const Tally&) {}};

std::vector<StoredPoint> all_points(SweepStore& store) {
  std::vector<StoredPoint> points;
  store.for_each([&](const StoredPoint& point) { points.push_back(point); }, true);
  return points;
}

TEST(Runner, ComputesEveryPointOnce) {
  const std::vector<Point> points = sample_points(60);
  SweepStore store(new_database(), Access::work);
  store.add(points);
  const Tally tally = run_points(store, points, plain, four_jobs);
  EXPECT_EQ(tally.computed, 60U);
  const std::vector<StoredPoint> stored = all_points(store);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(fmt::format("point {}", i));
    EXPECT_EQ(stored[static_cast<std::size_t>(i)].result, fmt::format("{{\"batch\":{}}}", i));
    EXPECT_EQ(stored[static_cast<std::size_t>(i)].figure("step_time_s"), i);
  }
  EXPECT_EQ(run_points(store, points, plain, four_jobs).computed, 0U);
}

TEST(Runner, FailingAndCrashingPointsDoNotStopTheRest) {
  const std::vector<Point> points = sample_points(20);
  SweepStore store(new_database(), Access::work);
  store.add(points);
  const LoadGroup load = [](const Point&) -> ComputePoint {
    return {[](const Point& point) -> Computed {
      const auto batch = point.inputs["batch"].get<std::string>();
      if (batch == "3") simulated_failure("deadlock", "rank 1 waits");
      if (batch == "7") std::abort();
      return {"{}", {}};
    }};
  };
  const Tally tally = run_points(store, points, load, four_jobs);
  EXPECT_EQ(tally.computed, 20U);
  const std::vector<StoredPoint> stored = all_points(store);
  EXPECT_EQ(stored[3].error, "rank 1 waits");
  EXPECT_EQ(stored[3].error_kind, "deadlock");
  EXPECT_EQ(stored[3].exit_status, 3);
  EXPECT_EQ(stored[7].error_kind, "crash");
  EXPECT_EQ(store.counts().done, 18U);
}

TEST(Runner, AProcessComputesPointsUntilItIsUsedUpOrDies) {
  const std::vector<Point> points = sample_points(12);
  SweepStore store(new_database(), Access::work);
  store.add(points);
  const LoadGroup load = [](const Point&) -> ComputePoint {
    const auto before = std::make_shared<int>(0);  // points of this process
    return {.compute = [before](const Point& point) -> Computed {
              const auto batch = point.inputs["batch"].get<std::string>();
              if (batch == "2") simulated_failure("deadlock", "rank 1 waits");
              if (batch == "4") std::abort();
              return {std::to_string((*before)++)};
            },
            .reusable = [before] { return *before != 3; }};
  };
  const RunnerOptions one_job{.jobs = 1, .stop = four_jobs.stop, .progress = four_jobs.progress};
  EXPECT_EQ(run_points(store, points, load, one_job).computed, 12U);
  std::vector<std::string> results;
  for (const StoredPoint& point : all_points(store)) {
    results.push_back(point.error_kind.empty() ? point.result : point.error_kind);
  }
  EXPECT_THAT(results, testing::ElementsAre("0", "1", "deadlock", "2", "crash", "0", "1", "2", "0", "1", "2", "0"));
}

TEST(Runner, WhatFailedInTheSimulationKeepsItsResult) {
  const std::vector<Point> points = sample_points(1);
  SweepStore store(new_database(), Access::work);
  store.add(points);
  const LoadGroup load = [](const Point&) -> ComputePoint {
    return {[](const Point&) {
      return Computed{R"({"state":"Failed"})", {{"restarts", 2}}, {"job", "Failed after 50 s"}};
    }};
  };
  EXPECT_EQ(run_points(store, points, load, four_jobs).computed, 1U);
  const StoredPoint stored = all_points(store).front();
  EXPECT_EQ(stored.status, PointStatus::failed);
  EXPECT_EQ(stored.error, "Failed after 50 s");
  EXPECT_EQ(stored.error_kind, "job");
  EXPECT_EQ(stored.exit_status, 3);
  EXPECT_EQ(stored.result, R"({"state":"Failed"})");
  EXPECT_EQ(stored.figure("restarts"), 2);
}

TEST(Runner, AGroupThatCannotBeLoadedFailsWhole) {
  std::vector<Point> points = sample_points(5, "good");
  for (const Point& point : sample_points(5, "bad")) points.push_back(point);
  SweepStore store(new_database(), Access::work);
  store.add(points);
  const LoadGroup load = [](const Point& first) -> ComputePoint {
    if (first.group == "bad") bad_input("platform", "bad.xml:3: no NPU");
    return plain(first);
  };
  EXPECT_EQ(run_points(store, points, load, four_jobs).computed, 10U);
  EXPECT_EQ(store.counts().done, 5U);
  EXPECT_EQ(store.counts().failed, 5U);
  EXPECT_EQ(all_points(store)[9].error, "bad.xml:3: no NPU");
}

TEST(Runner, WhenLoadingDiesPointsThatHaveNotBegunStayWaiting) {
  std::vector<Point> points = sample_points(5, "good");
  for (const Point& point : sample_points(5, "crashing")) points.push_back(point);
  SweepStore store(new_database(), Access::work);
  store.add(points);
  const LoadGroup load = [](const Point& first) -> ComputePoint {
    if (first.group == "crashing") std::abort();
    return plain(first);
  };
  const RunnerOptions one_job{.jobs = 1, .stop = four_jobs.stop, .progress = four_jobs.progress};
  const Tally tally = run_points(store, points, load, one_job);
  EXPECT_EQ(tally.computed, 6U);
  EXPECT_EQ(tally.before, 0U);
  EXPECT_EQ(store.counts().done, 5U);
  EXPECT_EQ(store.counts().waiting, 4U);
  EXPECT_EQ(all_points(store)[5].error_kind, "crash");  // the one for which it was loaded says why
  EXPECT_EQ(run_points(store, points, plain, one_job).computed, 4U);
}

TEST(Runner, WhenALoaderDiesOnlyThePointItWasAtHasFailed) {
  const std::vector<Point> points = sample_points(40);
  SweepStore store(new_database(), Access::work);
  store.add(points);
  const LoadGroup load = [](const Point&) -> ComputePoint {
    return {[](const Point& point) -> Computed {
      if (point.inputs["batch"] == "20") {  // others have told that points are short: the next one is sent ahead
        ::kill(::getppid(), SIGKILL);
        ::pause();
      }
      return {"{}", {}};
    }};
  };
  static_cast<void>(
      run_points(store, points, load, {.jobs = 1, .stop = four_jobs.stop, .progress = four_jobs.progress}));
  EXPECT_EQ(store.counts().done, 39U);
  EXPECT_EQ(store.counts().failed, 1U);
  EXPECT_EQ(all_points(store)[20].error_kind, "crash");
}

TEST(Runner, AGroupIsLoadedOncePerJob) {
  const std::string log = new_database() + ".log";
  std::filesystem::remove(log);
  const std::vector<Point> points = sample_points(40);
  SweepStore store(new_database(), Access::work);
  store.add(points);
  const LoadGroup load = [&](const Point& first) {
    std::ofstream(log, std::ios::app) << "loaded\n";
    return plain(first);
  };
  static_cast<void>(run_points(store, points, load, four_jobs));
  std::ifstream file(log);
  const auto loads = std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  EXPECT_GE(loads, 1);
  EXPECT_LE(loads, 4);
  std::filesystem::remove(log);
}

TEST(Runner, StopsWhenAskedAndGoesOnLater) {
  const std::vector<Point> points = sample_points(100);
  SweepStore store(new_database(), Access::work);
  store.add(points);
  std::uint64_t computed = 0;
  const RunnerOptions stopping{.jobs = 2,
                               .stop = [&] { return computed >= 10; },
                               .progress = [&](const Tally& tally) { computed = tally.computed; }};
  const Tally first = run_points(store, points, plain, stopping);
  EXPECT_GE(first.computed, 10U);
  EXPECT_LT(first.computed, 30U);
  EXPECT_EQ(store.counts().done, first.computed);
  EXPECT_EQ(store.counts().running, 0U);
  const Tally second = run_points(store, points, plain, four_jobs);
  EXPECT_EQ(second.before, first.computed);
  EXPECT_EQ(second.computed, 100 - first.computed);
}

TEST(Runner, InterruptedPointsArePutBack) {
  const std::vector<Point> points = sample_points(4);
  SweepStore store(new_database(), Access::work);
  store.add(points);
  bool stop = false;
  const LoadGroup load = [](const Point&) -> ComputePoint {
    return {[](const Point&) -> Computed { throw Error(ErrorCode::internal, interrupted_kind, "Ctrl-C"); }};
  };
  static_cast<void>(
      run_points(store, points, load,
                 {.jobs = 1, .stop = [&] { return std::exchange(stop, true); }, .progress = [](const Tally&) {}}));
  EXPECT_EQ(store.counts().waiting, 4U);
}

TEST(Runner, TwoSweepsShareTheWork) {
  const std::string path = new_database();
  const std::string log = path + ".log";
  std::filesystem::remove(log);
  const std::vector<Point> points = sample_points(200);
  const LoadGroup load = [&](const Point&) -> ComputePoint {
    return {[&log](const Point& point) {
      std::ofstream(log, std::ios::app) << point.id + "\n";
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return Computed{"{}", {}};
    }};
  };
  const auto sweep = [&] {
    SweepStore store(path, Access::work);
    store.add(points);
    return run_points(store, points, load, {.jobs = 2, .stop = four_jobs.stop, .progress = four_jobs.progress})
        .computed;
  };
  const pid_t other = ::fork();
  if (other == 0) {
    const auto computed = sweep();
    ::_exit(computed > 0 && computed < 200 ? 0 : 1);
  }
  while (!std::filesystem::exists(log)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::uint64_t computed = sweep();
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);  // the other one did some of them
  EXPECT_LT(computed, 200U);
  SweepStore store(path, Access::read);
  EXPECT_EQ(store.counts().done, 200U);
  std::ifstream file(log);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(file), {}, '\n'), 200);  // each once
  std::filesystem::remove(log);
}

}  // namespace
}  // namespace hcclsim::study
