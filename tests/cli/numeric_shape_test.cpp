#include "cli/numeric_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace hcclsim::cli {
namespace {

std::string shape(const RunOptions& options, Rank npus) { return shape_text(numeric_graph(options, npus)); }

TEST(NumericShape, SmallEnoughIsComputedAsTimed) {
  RunOptions options;
  options.model = "lenet";
  EXPECT_EQ(shape(options, 8), "32 x 1x28x28");
  options.model = "mlp:784,100,10";
  EXPECT_EQ(shape(options, 8), "32 x 784");
  options.model = "tinygpt";
  EXPECT_EQ(shape_text(timed_graph(options)), shape(options, 1));
  EXPECT_THAT(shape(options, 1), testing::EndsWith(" tokens"));
}

TEST(NumericShape, TooMuchIsComputedSmaller) {
  RunOptions options;  // ResNet50: 24 GFLOP per sample of 224 pixels
  EXPECT_EQ(shape(options, 8), "2 x 3x64x64");
  options.batch = 1;
  EXPECT_EQ(shape(options, 8), "1 x 3x224x224");
  EXPECT_EQ(shape(options, 16), "1 x 3x64x64");
  options.input = 32;
  options.batch = 1024;
  EXPECT_EQ(shape(options, 8), "2 x 3x32x32");
}

TEST(NumericShape, WhatIsGivenIsTaken) {
  RunOptions options;
  options.numerics.input = 224;
  EXPECT_EQ(shape(options, 8), "2 x 3x224x224");
  options.numerics.batch = 16;
  EXPECT_EQ(shape(options, 8), "16 x 3x224x224");
  options.numerics.input.reset();
  EXPECT_EQ(shape(options, 8), "16 x 3x64x64");
  options.model = "mlp:784,10";
  options.numerics.input = 64;
  EXPECT_THROW((void)numeric_graph(options, 8), Error);
}

TEST(NumericShape, MemoryLimit) {
  EXPECT_EQ(default_memory_limit("MemTotal:       24 kB\nMemAvailable:       1000 kB\nCached: 5 kB\n"), 819200U);
  EXPECT_EQ(default_memory_limit("MemTotal:       24 kB\n"), 0U);
  EXPECT_EQ(default_memory_limit("MemAvailable:"), 0U);
}

}  // namespace
}  // namespace hcclsim::cli
