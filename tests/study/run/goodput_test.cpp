#include "study/run/goodput.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

constexpr FailingJob quiet{.step = 2,
                           .checkpoint = 5,
                           .checkpoint_every = 10,
                           .mtbf = std::numeric_limits<double>::infinity(),
                           .restart = 60,
                           .steps = 95};

// 95 steps of 2 s; checkpoints behind steps 10 to 90, none behind the last one.
TEST(Goodput, WithoutFailures) {
  const JobTimes times = run_failing_job(quiet, 1, 0);
  EXPECT_DOUBLE_EQ(times.steps, 190);
  EXPECT_DOUBLE_EQ(times.checkpoints, 45);
  EXPECT_EQ(times.lost, 0);
  EXPECT_EQ(times.restarts, 0);
  EXPECT_EQ(times.failures, 0);
  EXPECT_DOUBLE_EQ(times.goodput(), 190. / 235);
}

TEST(Goodput, DependsOnSeedAndRunAlone) {
  FailingJob job = quiet;
  job.mtbf = 100;
  job.steps = 100'000;
  const JobTimes first = run_failing_job(job, 1, 0);
  EXPECT_EQ(first.total(), run_failing_job(job, 1, 0).total());
  EXPECT_NE(first.total(), run_failing_job(job, 1, 1).total());
  EXPECT_NE(first.total(), run_failing_job(job, 2, 0).total());
}

// The time until a stretch of length t with checkpoint C is done, with mean time between failures M and restart R, is
// M·e^(R/M)·(e^((t + C)/M) − 1) on average (Daly, 2006, equation 20, for whole numbers of stretches).
TEST(Goodput, MeansAreThoseOfTheFormula) {
  FailingJob job{
      .step = 1, .checkpoint = 10, .checkpoint_every = 90, .mtbf = 400, .restart = 30, .steps = 90 * 200'000};
  const JobTimes times = run_failing_job(job, 3, 0);
  const double stretch = 400 * std::exp(30. / 400) * (std::exp(100. / 400) - 1);
  EXPECT_NEAR(times.total() / 200'000, stretch, 0.01 * stretch);
  EXPECT_DOUBLE_EQ(times.steps, 90. * 200'000);
  // Failures come at the rate 1/M all the time.
  EXPECT_NEAR(times.failures, times.total() / 400, 0.01 * times.total() / 400);
}

TEST(Goodput, DalysInterval) {
  // C = 2, M = 100: √400 · (1 + √0.01/3 + 0.01/9) − 2.
  EXPECT_NEAR(daly_interval(2, 100), 20 * (1 + 0.1 / 3 + 0.01 / 9) - 2, 1e-12);
  EXPECT_EQ(daly_interval(200, 100), 100);
}

// No other interval of a grid is clearly better than the analytic one.
TEST(Goodput, DalysIntervalIsBest) {
  FailureSpec spec{
      .npu_mtbf = 8 * 3600., .checkpoint_bandwidth = 1e9, .restart = 120, .length = 30 * 86400., .runs = 20};
  const double best = goodput_of(spec, 0.5, 20'000'000'000, 8).asked.mean.goodput();
  for (const std::uint64_t every : {50U, 100U, 200U, 800U, 1600U, 3200U}) {
    spec.checkpoint_every = every;
    const GoodputResult other = goodput_of(spec, 0.5, 20'000'000'000, 8);
    EXPECT_LT(other.asked.mean.goodput(), best + 0.002) << every;
    ASSERT_TRUE(other.optimum.has_value());
    EXPECT_EQ(other.optimum->mean.goodput(), best);
  }
}

TEST(Goodput, JobsThatHardlyEndAreRefused) {
  FailureSpec spec{.npu_mtbf = 3600,
                   .checkpoint_every = 100'000,
                   .checkpoint_bandwidth = 1e9,
                   .restart = 60,
                   .length = 86400,
                   .runs = 1};
  EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(goodput_of(spec, 1, 1'000'000'000, 8)); }),
              testing::HasSubstr("would hardly ever end"));
}

TEST(Goodput, JobsThatWouldTakeTooLongToSimulateAreRefused) {
  const FailureSpec job{
      .npu_mtbf = 50'000 * 3600., .checkpoint_bandwidth = 1e9, .restart = 600, .length = 30 * 86400., .runs = 100};
  const auto refusal = [&](const FailureSpec& spec) {
    return test::refusal("option", [&] { static_cast<void>(goodput_of(spec, 0.02, 1'000'000'000, 8)); });
  };
  FailureSpec spec = job;
  spec.length = 1e14;
  EXPECT_THAT(refusal(spec), testing::HasSubstr("--job-time: 1e+14 s are more than 1e+15 steps of 0.02 s"));
  spec.length = 1e13;
  EXPECT_THAT(refusal(spec), testing::HasSubstr("attempts from one checkpoint to the next; accepted: 1e+08"));
  spec = job;
  spec.checkpoint_every = 1;
  EXPECT_THAT(refusal(spec), testing::HasSubstr("with a checkpoint every 1 steps take about"));
  spec = job;
  spec.restart = 1e12;
  const std::string restart = refusal(spec);
  EXPECT_THAT(restart, testing::HasSubstr("--restart-time: "));
  EXPECT_THAT(restart, testing::HasSubstr("accepted: at most 12 times the time between failures, 2.7e+08 s"));
}

}  // namespace
}  // namespace hcclsim::study
