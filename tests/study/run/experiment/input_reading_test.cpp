#include "study/run/experiment/input_reading.hpp"

#include <gtest/gtest.h>

#include "models/zoo/zoo.hpp"

namespace hcclsim::study {
namespace {

/// Two micro-batches of 3 samples: 8 numbers and a label of 4 bytes each.
InputReading read(const RunSpec& spec, Rank npus) {
  return input_reading(spec, models::make_model({.name = "mlp:8,8,8", .batch = 3}), {3, 2}, npus);
}

constexpr Bytes of_sample = 8 * 4;
constexpr Bytes of_label = 4;

TEST(InputReading, AReplicaReadsItsOwnSamples) {
  const InputReading reading = read({}, 4);
  EXPECT_EQ(reading.bytes, 6 * (of_sample + of_label));
  EXPECT_EQ(reading.samples, 6U);
  EXPECT_EQ(reading.sample_bytes, 6 * of_sample);
  EXPECT_EQ(reading.label_bytes, 6 * of_label);
  EXPECT_EQ(reading.all_ranks, 4 * reading.bytes);
  EXPECT_FALSE(reading.by_strategy);
  EXPECT_FALSE(reading.whole);
}

TEST(InputReading, FullBatchReadsThoseOfAll) {
  RunSpec spec;
  spec.full_batch = true;
  EXPECT_EQ(read(spec, 4).bytes, 4 * 6 * (of_sample + of_label));
  EXPECT_TRUE(read(spec, 4).whole);
  EXPECT_EQ(read(spec, 4).samples, 4 * 6U);
  // Replicas are those of a stage; the stages read the same.
  spec.step.shape.stages = 2;
  EXPECT_EQ(read(spec, 4).bytes, 2 * 6 * (of_sample + of_label));
}

TEST(InputReading, TuplesCutEachInput) {
  RunSpec spec;
  spec.dataset_cuts = {{4, 1}, {4}};
  EXPECT_EQ(read(spec, 4).bytes, 6 * (of_sample + of_label));
  EXPECT_EQ(read(spec, 4).samples, 6U);
  spec.dataset_cuts = {{2, 2}, {4}};  // twice as many halves of samples
  EXPECT_EQ(read(spec, 4).sample_bytes, 6 * of_sample);
  EXPECT_EQ(read(spec, 4).samples, 2 * 6U);
  spec.dataset_cuts = {{4, 1}, {1}};
  EXPECT_EQ(read(spec, 4).bytes, 6 * of_sample + 4 * 6 * of_label);
  EXPECT_FALSE(read(spec, 4).whole);
  spec.dataset_cuts = {{1, 1}, {1}};
  EXPECT_TRUE(read(spec, 4).whole);
}

TEST(InputReading, InferenceReadsNoLabels) {
  RunSpec spec;
  spec.step.shape.forward_only = true;
  EXPECT_EQ(read(spec, 1).bytes, 6 * of_sample);
}

}  // namespace
}  // namespace hcclsim::study
