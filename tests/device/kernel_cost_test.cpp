#include "device/kernel_cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace hcclsim::device {
namespace {

using models::Kernel;
using models::KernelClass;

/// A chip with round figures: 4 cube cores, 2 vector cores, 1 GHz, 1 TB/s, t0 5 us, efficiencies 0.5 and 0.25.
Soc round_soc() {
  Soc soc;
  soc.name = "round";
  soc.cube_cores = 4;
  soc.vector_cores = 2;
  soc.clock_ghz = 1;
  soc.cube = {.int8 = 2, .bf16 = 0, .fp32 = 0.25};
  soc.hbm_bandwidth = 1e12;
  soc.t0 = 5e-6;
  soc.efficiency_conv = 0.5;
  soc.efficiency_matmul = 0.25;
  return soc;
}

Kernel cube_kernel(models::CubeWork work, KernelClass kind = KernelClass::convolution) {
  Kernel kernel;
  kernel.name = "test";
  kernel.kind = kind;
  kernel.cube = work;
  return kernel;
}

/// Cube cycles at efficiency 1.
double cycles(const Kernel& kernel, const Soc& soc) {
  return kernel_parts(kernel, soc).cube * 1e9 * soc.efficiency_conv;
}

TEST(KernelCost, CubeByHand) {
  const Soc soc = round_soc();
  // 64×48×100: 4·3 = 12 tiles on 4 cores, 3 each, times ceil(100/16) = 7 -> 21 cycles, at half efficiency 42 ns.
  const Kernel kernel = cube_kernel({.m = 64, .n = 48, .k = 100});
  EXPECT_NEAR(kernel_parts(kernel, soc).cube, 42e-9, 1e-20);
  EXPECT_NEAR(kernel_time(kernel, soc), 5e-6 + 42e-9, 1e-18);
}

TEST(KernelCost, TileEdges) {
  const Soc soc = round_soc();
  EXPECT_NEAR(cycles(cube_kernel({.m = 1, .n = 1, .k = 1}), soc), 1, 1e-9);
  EXPECT_NEAR(cycles(cube_kernel({.m = 16, .n = 16, .k = 16}), soc), 1, 1e-9);
  EXPECT_NEAR(cycles(cube_kernel({.m = 17, .n = 16, .k = 16}), soc), 1, 1e-9);   // 2 tiles, 4 cores
  EXPECT_NEAR(cycles(cube_kernel({.m = 64, .n = 16, .k = 17}), soc), 2, 1e-9);   // one tile each, K of two
  EXPECT_NEAR(cycles(cube_kernel({.m = 65, .n = 16, .k = 16}), soc), 2, 1e-9);   // 5 tiles on 4 cores
  EXPECT_NEAR(cycles(cube_kernel({.m = 128, .n = 16, .k = 16}), soc), 2, 1e-9);  // 8 tiles on 4 cores
}

TEST(KernelCost, WeightGradientSharesAllTiles) {
  const Soc soc = round_soc();
  // One output tile: a plain product leaves three cores idle, the split over K uses all four.
  EXPECT_NEAR(cycles(cube_kernel({.m = 16, .n = 16, .k = 1600}), soc), 100, 1e-9);
  EXPECT_NEAR(cycles(cube_kernel({.m = 16, .n = 16, .k = 1600, .split_k = true}), soc), 25, 1e-9);
  EXPECT_NEAR(cycles(cube_kernel({.m = 17, .n = 33, .k = 17, .split_k = true}), soc), 3, 1e-9);  // 2·3·2 = 12
  EXPECT_NEAR(cycles(cube_kernel({.m = 17, .n = 33, .k = 33, .split_k = true}), soc), 5, 1e-9);  // 18 on 4 cores
}

TEST(KernelCost, GroupsShareTheCores) {
  const Soc soc = round_soc();
  // 6 groups of one tile each on 4 cores: two rounds of ceil(9/16) = 1.
  EXPECT_NEAR(cycles(cube_kernel({.m = 10, .n = 1, .k = 9, .groups = 6}), soc), 2, 1e-9);
  EXPECT_NEAR(cycles(cube_kernel({.m = 10, .n = 1, .k = 33, .groups = 6, .split_k = true}), soc), 5, 1e-9);
}

TEST(KernelCost, TypesOnTheCube) {
  const Soc soc = round_soc();
  Kernel kernel = cube_kernel({.m = 64, .n = 16, .k = 16});
  EXPECT_NEAR(kernel_parts(kernel, soc).cube, 2e-9, 1e-20);
  kernel.dtype = DataType::fp32;
  EXPECT_NEAR(kernel_parts(kernel, soc).cube, 8e-9, 1e-20);
  kernel.dtype = DataType::int8;
  EXPECT_NEAR(kernel_parts(kernel, soc).cube, 1e-9, 1e-20);
  kernel.dtype = DataType::bf16;
  try {
    (void)kernel_time(kernel, soc);
    FAIL() << "bf16 accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("bf16"), ::testing::HasSubstr("round")));
  }
}

TEST(KernelCost, VectorByHand) {
  const Soc soc = round_soc();
  Kernel kernel;
  kernel.vector_elements = 2561;  // fp16: 128 lanes on 2 cores, ceil(2561 / 256) = 11 cycles
  EXPECT_NEAR(kernel_parts(kernel, soc).vector, 11e-9, 1e-20);
  kernel.dtype = DataType::fp32;  // 64 lanes: ceil(2561 / 128) = 21
  EXPECT_NEAR(kernel_parts(kernel, soc).vector, 21e-9, 1e-20);
  kernel.dtype = DataType::int8;  // as 16 bit
  EXPECT_NEAR(kernel_parts(kernel, soc).vector, 11e-9, 1e-20);
}

TEST(KernelCost, TheSlowestUnitDecides) {
  const Soc soc = round_soc();
  Kernel kernel = cube_kernel({.m = 64, .n = 16, .k = 1600});  // 100 cycles at 0.5: 0.2 us
  kernel.vector_elements = 25600;                              // 100 cycles: 0.1 us
  kernel.read = 100'000;
  kernel.written = 50'000;  // 0.15 us
  EXPECT_NEAR(kernel_time(kernel, soc), 5.2e-6, 1e-17);
  kernel.written = 200'000;  // 0.3 us
  EXPECT_NEAR(kernel_time(kernel, soc), 5.3e-6, 1e-17);
  kernel.vector_elements = 102400;  // 0.4 us
  EXPECT_NEAR(kernel_time(kernel, soc), 5.4e-6, 1e-17);
}

TEST(KernelCost, WhatAKernelNeedsOfTheHbm) {
  const Soc soc = round_soc();
  Kernel kernel = cube_kernel({.m = 64, .n = 16, .k = 1600});  // 0.2 us
  kernel.read = 100'000;
  kernel.written = 50'000;
  kernel.duration = kernel_time(kernel, soc);
  EXPECT_EQ(memory_demand(kernel, soc).launch, 5e-6);
  EXPECT_EQ(memory_demand(kernel, soc).bytes, 150'000);
  // Measured: 0.1 us behind the launch, in which the HBM moves 100,000 bytes; or not even as long as a launch.
  kernel.duration = 5.1e-6;
  EXPECT_NEAR(memory_demand(kernel, soc).bytes, 100'000, 1e-3);
  kernel.duration = 4e-6;
  EXPECT_EQ(memory_demand(kernel, soc).launch, 4e-6);
  EXPECT_EQ(memory_demand(kernel, soc).bytes, 0);
  kernel.kind = KernelClass::communication;
  EXPECT_EQ(memory_demand(kernel, soc).launch, 0);
}

TEST(KernelCost, AnEmptyKernelCostsItsLaunch) { EXPECT_EQ(kernel_time(Kernel{}, round_soc()), 5e-6); }

}  // namespace
}  // namespace hcclsim::device
