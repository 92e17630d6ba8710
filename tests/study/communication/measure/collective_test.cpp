#include "study/communication/measure/collective.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/error.hpp"
#include "base/shared_work.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::study {
namespace {

MeasureSpec small_allreduce() {
  MeasureSpec spec{.sizes = {.first = 0, .last = 1 << 20, .step = 1 << 19}, .explain = true};
  spec.platform.file = find_platform("atlas800-9000");
  return spec;
}

TEST(MeasureCollective, ReturnsFromItsChildWhatItMeasured) {
  const MeasureSpec spec = small_allreduce();
  const Measurement measurement = measure_collective(spec);
  EXPECT_EQ(measurement.on.platform, "atlas800-9000.xml");
  EXPECT_EQ(measurement.on.npus, 8U);
  EXPECT_EQ(measurement.ranks, 8U);
  ASSERT_EQ(measurement.rows.size(), 3U);
  EXPECT_TRUE(measurement.ok());
  EXPECT_EQ(measurement.rows[0].algorithm, "none");
  for (const MeasurementRow& row : measurement.rows) {
    if (row.size == 0) continue;
    EXPECT_GE(row.time, row.bound);
    EXPECT_DOUBLE_EQ(row.speed.algbw, static_cast<double>(row.size) / row.time);
    EXPECT_TRUE(row.check.has_value() && row.check->ok && !row.check->proved);
  }
  EXPECT_FALSE(measurement.explanation.empty());
  EXPECT_FALSE(measurement.link_sources.empty());
}

// With vector cores a call takes their launch of 2 us, and what --explain says of its algorithm.
TEST(MeasureCollective, ExplainsInTheModeOfTheRow) {
  for (const char* const platform : {"atlas800t-a2", "atlas900-a3"}) {
    MeasureSpec spec{.sizes = {.first = 8192, .last = 8192, .step = 1}, .explain = true};
    spec.platform.file = find_platform(platform);
    spec.platform.hccl_settings = {{.variable = "HCCL_OP_EXPANSION_MODE", .value = "AIV", .origin = ""}};
    spec.request.launch = hccl::LaunchMode::op;
    spec.iterations = 1;
    spec.warmups = 0;
    const Measurement measurement = measure_collective(spec);
    const MeasurementRow& row = measurement.rows.front();
    const ExplainedAlgorithm& chosen = measurement.explanation.front().algorithms.front();
    ASSERT_EQ(chosen.name, row.algorithm);
    EXPECT_NEAR(*chosen.simulated + 2e-6, row.time, 1e-9) << platform;
    EXPECT_DOUBLE_EQ(*chosen.formula_time, *row.formula) << platform;
    EXPECT_LE(*row.formula, row.time) << platform;
    EXPECT_LE(row.bound, row.time) << platform;
    EXPECT_THAT(measurement.explanation.front().levels.front(), testing::HasSubstr("us of access by vector cores"));
  }
}

TEST(MeasureCollective, CountsSizesForOtherProcesses) {
  const auto work = std::make_shared<SharedWork>();
  static_cast<void>(measure_collective(small_allreduce(), work));
  EXPECT_EQ(work->planned(), 2U);  // nothing is simulated of 0 bytes
  EXPECT_EQ(work->completed(), 2U);
}

TEST(MeasureCollective, RefusesMoreRanksThanThereAre) {
  MeasureSpec spec = small_allreduce();
  spec.ranks = 9;
  try {
    static_cast<void>(measure_collective(spec));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "option");
    EXPECT_THAT(error.what(), testing::HasSubstr("has 8 NPUs"));
  }
}

}  // namespace
}  // namespace hcclsim::study
