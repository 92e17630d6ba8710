#include "device/matmul_cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/counter_random.hpp"

namespace hcclsim::device {
namespace {

using models::CubeWork;

constexpr DataType fp16 = DataType::fp16;

/// One core with round figures: 64 bytes in and 32 out per cycle, 16 KiB to add up in: a block of 64×64 once.
Soc round_core() {
  Soc soc;
  soc.cube_cores = 1;
  soc.efficiency_matmul = 0.5;
  soc.core = {.l2_read = 64, .l2_write = 32, .l0c = 16384};
  return soc;
}

Soc a2() {
  std::vector<std::string> notes;
  return find_soc("910B2", notes);
}

/// Share of the cubes' cycles that a product reaches.
double efficiency(const CubeWork& work, const Soc& soc) {
  const double tiles = static_cast<double>(work.m * work.n) * static_cast<double>(work.k * work.groups) / 4096;
  return tiles / soc.cube_cores / matmul_cycles(work, fp16, soc);
}

TEST(MatmulCost, ByHand) {
  Soc soc = round_core();
  // One tile: two cycles in the cube, 32 strips of 16 elements of 2 bytes (16 cycles), 256 elements out (16).
  EXPECT_DOUBLE_EQ(matmul_cycles({.m = 1, .n = 1, .k = 1}, fp16, soc), 16 + 16);
  // Long k: 64 tiles of 2 cycles are 128; reading 32 · 1024 · 2 bytes takes 1024.
  EXPECT_DOUBLE_EQ(matmul_cycles({.m = 16, .n = 16, .k = 1024}, fp16, soc), 1024 + 16);
  // 64×64×64 as one block: reading 128 · 64 · 2 / 64 = 256, and 64 · 64 · 2 / 32 = 256 to write it. Two blocks of 64×32
  // fit twice: 2 · 192 for reading, and 128 for the last write: the same.
  EXPECT_DOUBLE_EQ(matmul_cycles({.m = 64, .n = 64, .k = 64}, fp16, soc), 512);
  // A fast L2 leaves the cube and the writes: sixteen blocks of 8 cycles, each written (16) beside the next one.
  soc.core.l2_read = 1e9;
  EXPECT_NEAR(matmul_cycles({.m = 64, .n = 64, .k = 64}, fp16, soc), 8 + 16 * 16, 1e-3);
  soc.core.l2_write = 1e9;
  EXPECT_NEAR(matmul_cycles({.m = 64, .n = 64, .k = 64}, fp16, soc), 128, 1e-3);
  // fp32 results are twice as much to write, int8 takes half the cycles.
  EXPECT_NEAR(matmul_cycles({.m = 64, .n = 64, .k = 64}, DataType::int8, soc), 64, 1e-3);
}

TEST(MatmulCost, ResultsInFp32TakeLongerToWrite) {
  const Soc soc = round_core();
  const CubeWork work{.m = 16, .n = 16, .k = 16};
  CubeWork sums = work;
  sums.sums_out = true;
  EXPECT_DOUBLE_EQ(matmul_cycles(work, fp16, soc), 16 + 16);
  EXPECT_DOUBLE_EQ(matmul_cycles(sums, fp16, soc), 16 + 32);
}

TEST(MatmulCost, RoundsOfCores) {
  Soc soc = round_core();
  soc.core = {.l2_read = 1e9, .l2_write = 1e9, .l0c = 2048};  // blocks of 16×16 fit twice, of 32×16 once
  soc.cube_cores = 4;
  const auto cycles = [&](std::uint64_t groups) {
    return matmul_cycles({.m = 16, .n = 16, .k = 160, .groups = groups}, fp16, soc);
  };
  EXPECT_NEAR(cycles(1), 20, 1e-3);
  EXPECT_NEAR(cycles(4), 20, 1e-3);
  EXPECT_NEAR(cycles(5), 40, 1e-3);
  // A weight gradient cuts k over the idle cores.
  EXPECT_NEAR(matmul_cycles({.m = 16, .n = 16, .k = 160, .split_k = true}, fp16, soc), 6, 1e-3);
}

TEST(MatmulCost, ShapesThatCostEfficiency) {
  const Soc soc = a2();
  const double large = efficiency({.m = 8192, .n = 8192, .k = 8192}, soc);
  EXPECT_NEAR(large, 328.0 / 353.9, 0.005);
  EXPECT_LT(efficiency({.m = 8192, .n = 8192, .k = 64}, soc), 0.8 * large);       // small k
  EXPECT_LT(efficiency({.m = 64, .n = 8192, .k = 8192}, soc), 0.8 * large);       // few rows
  EXPECT_LT(efficiency({.m = 128, .n = 128 * 25, .k = 8192}, soc), 0.9 * large);  // 25 blocks on 24 cores
  EXPECT_LT(efficiency({.m = 4096, .n = 2048, .k = 128, .groups = 32, .sums_out = true}, soc), 0.75);  // attention
}

TEST(MatmulCost, NeverFasterThanTheCubesAndNeverCheaperWhenLarger) {
  const Soc soc = a2();
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto draw = [&](std::uint64_t stream, std::uint64_t most) { return 1 + counter_bits(7, stream, i) % most; };
    const CubeWork work{
        .m = draw(1, 5000), .n = draw(2, 5000), .k = draw(3, 5000), .groups = draw(4, 8), .split_k = draw(5, 2) == 1};
    const double cycles = matmul_cycles(work, fp16, soc);
    EXPECT_LE(efficiency(work, soc), soc.efficiency_matmul) << work.m << 'x' << work.n << 'x' << work.k;
    CubeWork more = work;
    more.groups += 1;
    EXPECT_GE(matmul_cycles(more, fp16, soc), cycles) << work.m << 'x' << work.n << 'x' << work.k;
    CubeWork split = work;
    split.split_k = true;
    EXPECT_LE(matmul_cycles(split, fp16, soc), cycles * (1 + 1e-12));
  }
}

TEST(MatmulCost, WhatL2CannotHoldIsReadAgain) {
  Soc soc = round_core();
  soc.l2_bytes = 1000;
  EXPECT_EQ(reread_bytes({.m = 10, .n = 10, .k = 10}, fp16, soc), 0U);  // 400 bytes
  // 2000 and 200 bytes: one in five strips of at most 500, or the other in one.
  EXPECT_EQ(reread_bytes({.m = 100, .n = 10, .k = 10}, fp16, soc), 0U);
  // 2000 and 2000 bytes in strips of 500: four, so 2000 bytes three times again.
  EXPECT_EQ(reread_bytes({.m = 100, .n = 100, .k = 10}, fp16, soc), 6000U);
  EXPECT_EQ(reread_bytes({.m = 100, .n = 100, .k = 10, .groups = 3}, fp16, soc), 18000U);
}

}  // namespace
}  // namespace hcclsim::device
