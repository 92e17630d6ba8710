#include "device/numerics/worker_pool.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::device {
namespace {

class WorkerPoolOf : public testing::TestWithParam<unsigned> {};

TEST_P(WorkerPoolOf, EveryItemIsDoneOnceByAWorkerOfThePool) {
  WorkerPool pool(GetParam());
  ASSERT_EQ(pool.workers(), GetParam());
  for (const std::size_t count : {0, 1, 3, 1000}) {  // one pool for all rounds
    SCOPED_TRACE(fmt::format("{} items", count));
    std::vector<std::atomic<int>> done(count);
    std::atomic<bool> known = true;
    pool.for_each(count, [&](std::size_t item, unsigned worker) {
      ++done[item];
      if (worker >= pool.workers()) known = false;
    });
    for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
    EXPECT_TRUE(known);
  }
}

TEST_P(WorkerPoolOf, TheExceptionOfTheSmallestItemIsThrownAfterAllItems) {
  WorkerPool pool(GetParam());
  std::atomic<int> done = 0;
  const auto work = [&](std::size_t item, unsigned) {
    ++done;
    if (item % 10 == 7) throw std::runtime_error(std::to_string(item));
  };
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    done = 0;
    try {
      pool.for_each(100, work);
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "7");
    }
    EXPECT_EQ(done, 100);
  }
  done = 0;
  pool.for_each(5, work);  // the failure is forgotten
  EXPECT_EQ(done, 5);
}

TEST_P(WorkerPoolOf, WorkersRunAtTheSameTime) {
  WorkerPool pool(GetParam());
  std::atomic<unsigned> arrived = 0;
  pool.for_each(GetParam(), [&](std::size_t, unsigned) {
    ++arrived;
    while (arrived < GetParam()) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Workers, WorkerPoolOf, testing::Values(1, 2, 4),
                         [](const auto& tested) { return fmt::format("{}_workers", tested.param); });

TEST(WorkerPool, WorkerZeroIsTheCaller) {
  WorkerPool pool(1);
  const std::thread::id caller = std::this_thread::get_id();
  pool.for_each(3, [&](std::size_t, unsigned worker) {
    EXPECT_EQ(worker, 0U);
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

/// Threads need address space for their stacks; without any left the pool must end those that it has begun.
TEST(WorkerPoolDeathTest, SaysWhenTheSystemGivesNoMoreThreads) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs address space without limit";
#endif
  const auto make_pool = [] {
    const rlimit space{.rlim_cur = rlim_t{2} << 30U, .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_AS, &space);
    try {
      const WorkerPool pool(100'000);
    } catch (const Error& error) {
      fmt::print(stderr, "{}: {}\n", error.kind(), error.what());
      ::_exit(static_cast<int>(error.code()));
    }
    ::_exit(0);
  };
  EXPECT_EXIT(make_pool(), testing::ExitedWithCode(2), "workers: .*100000 workers.*take fewer");
}

TEST(WorkerPool, ByDefaultOneWorkerPerProcessor) { EXPECT_GE(WorkerPool().workers(), 1U); }

}  // namespace
}  // namespace hcclsim::device
