#include "study/run/numerics/numeric_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::study {
namespace {

/// A run with real gradients.
RunSpec numeric_run() {
  RunSpec spec;
  spec.numerics.emplace();
  return spec;
}

std::string shape(const RunSpec& spec, Rank npus) {
  return shape_text(numeric_graph(spec, {spec.model.batch, 1}, npus));
}

TEST(NumericShape, SmallEnoughIsComputedAsTimed) {
  RunSpec spec = numeric_run();
  spec.model.name = "lenet";
  EXPECT_EQ(shape(spec, 8), "32 x 1x28x28");
  spec.model.name = "mlp:784,100,10";
  EXPECT_EQ(shape(spec, 8), "32 x 784");
  spec.model.name = "tinygpt";
  EXPECT_EQ(shape_text(models::make_model(spec.model)), shape(spec, 1));
  EXPECT_THAT(shape(spec, 1), testing::EndsWith(" tokens"));
}

TEST(NumericShape, TooMuchIsComputedSmaller) {
  RunSpec spec = numeric_run();  // ResNet50: 24 GFLOP per sample of 224 pixels
  EXPECT_EQ(shape(spec, 8), "2 x 3x64x64");
  spec.model.batch = 1;
  EXPECT_EQ(shape(spec, 8), "1 x 3x224x224");
  EXPECT_EQ(shape(spec, 16), "1 x 3x64x64");
  spec.model.input = 32;
  spec.model.batch = 1024;
  EXPECT_EQ(shape(spec, 8), "2 x 3x32x32");
}

TEST(NumericShape, WhatIsGivenIsTaken) {
  RunSpec spec = numeric_run();
  spec.numerics->input = 224;
  EXPECT_EQ(shape(spec, 8), "2 x 3x224x224");
  spec.numerics->batch = 16;
  EXPECT_EQ(shape(spec, 8), "16 x 3x224x224");
  spec.numerics->input.reset();
  EXPECT_EQ(shape(spec, 8), "16 x 3x64x64");
  spec.model.name = "mlp:784,10";
  spec.numerics->input = 64;
  EXPECT_THROW((void)numeric_graph(spec, {spec.model.batch, 1}, 8), Error);
}

TEST(NumericShape, SmallerOnes) {
  const auto smaller = [](const RunSpec& spec) {
    std::vector<std::string> shapes;
    for (const models::Graph& graph :
         smaller_graphs(spec, {spec.model.batch, 1}, numeric_graph(spec, {spec.model.batch, 1}, 8), 8))
      shapes.push_back(shape_text(graph));
    return shapes;
  };
  RunSpec spec = numeric_run();
  EXPECT_THAT(smaller(spec), testing::ElementsAre("1 x 3x64x64", "1 x 3x32x32"));
  spec.numerics->batch = 5;
  EXPECT_THAT(smaller(spec), testing::ElementsAre("5 x 3x32x32"));
  spec.numerics->batch.reset();
  spec.numerics->input = 224;
  EXPECT_THAT(smaller(spec), testing::ElementsAre("1 x 3x224x224"));
  spec.numerics->batch = 1;
  EXPECT_THAT(smaller(spec), testing::IsEmpty());
  spec = numeric_run();
  spec.model.name = "lenet";  // 28 pixels, on which its parameters depend
  spec.model.batch = 6;
  EXPECT_THAT(smaller(spec), testing::ElementsAre("3 x 1x28x28", "1 x 1x28x28"));
}

TEST(NumericShape, MemoryLimit) {
  EXPECT_EQ(default_memory_limit("MemTotal:       24 kB\nMemAvailable:       1000 kB\nCached: 5 kB\n"), 819200U);
  EXPECT_EQ(default_memory_limit("MemTotal:       24 kB\n"), 0U);
  EXPECT_EQ(default_memory_limit("MemAvailable:"), 0U);
}

}  // namespace
}  // namespace hcclsim::study
