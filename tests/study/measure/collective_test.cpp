#include "study/measure/collective.hpp"

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
