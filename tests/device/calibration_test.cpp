#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

#include "device/kernel_cost.hpp"
#include "device/program.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training/programs.hpp"

// Solves the calibrated constants of device/soc.cpp anew from the published figures, with the kernels as they are
// lowered today. If a change of the kernels or of the cost model moves them, these tests fail and print the new values;
// put those into soc.cpp, and the printed table into platforms/README.md.
namespace hcclsim::device {
namespace {

// One Ascend910A, ResNet50 v1.5, mixed precision (MindSpore 0.2.0 and 0.5.0 pages), and BERT-Large (the same pages).
constexpr Seconds resnet50_batch32 = 17.9e-3;
constexpr Seconds resnet50_batch256 = 121e-3;
constexpr double bert_sequences_per_s = 269;
constexpr double bert_sequences_per_s_older = 210;
// 910B, large square matrix products.
constexpr Flops matmul_bf16 = 328e12;
constexpr Flops matmul_fp32 = 87e12;

Soc soc(std::string_view name) {
  std::vector<std::string> notes;
  return find_soc(name, notes);
}

Seconds resnet50_step(std::uint32_t batch, const Soc& chip) {
  std::vector<std::string> notes;
  return test::compute_time(make_program(models::make_model({.name = "resnet50", .batch = batch}), chip, {}, notes));
}

Seconds bert_step(const Soc& chip) {
  std::vector<std::string> notes;
  static const models::Graph bert = models::make_model({.name = "bert-large", .batch = 96, .sequence = 128});
  return test::compute_time(make_program(bert, chip, {.optimizer = models::Optimizer::lamb}, notes));
}

/// Speed of a square product of 8192.
Flops matmul_speed(DataType type, const Soc& chip) {
  constexpr std::uint64_t side = 8192;
  models::Kernel kernel;
  kernel.kind = models::KernelClass::matmul;
  kernel.dtype = type;
  kernel.cube = {.m = side, .n = side, .k = side};
  kernel.read = 2 * side * side * size_of(type);
  kernel.written = side * side * size_of(type);
  return 2.0 * side * side * side / kernel_time(kernel, chip);
}

/// The x in [low, high] where a falling function reaches `target`.
double solve(double low, double high, double target, const std::function<double(double)>& falling) {
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (falling(middle) > target ? low : high) = middle;
  }
  return (low + high) / 2;
}

double relative(double value, double reference) { return std::abs(value / reference - 1); }

/// The launch overhead that makes batch 32 right at the efficiencies of `chip`; the step is linear in it.
Seconds solve_t0(Soc chip) {
  chip.t0 = 0;
  const Seconds without = resnet50_step(32, chip);
  chip.t0 = 1;
  const double kernels = resnet50_step(32, chip) - without;
  return (resnet50_batch32 - without) / kernels;
}

TEST(Calibration, ConvolutionsAndLaunchFromTwoResNet50Steps) {
  const Soc shipped = soc("910A");
  Soc chip = shipped;
  chip.efficiency_conv = solve(0.1, 1.0, resnet50_batch256, [&chip](double efficiency) {
    chip.efficiency_conv = efficiency;
    chip.t0 = solve_t0(chip);
    return resnet50_step(256, chip);
  });
  chip.t0 = solve_t0(chip);
  fmt::print("efficiency_conv {:.4f}, t0 {:.4f} us\n", chip.efficiency_conv, chip.t0 / microsecond);
  EXPECT_LT(relative(shipped.efficiency_conv, chip.efficiency_conv), 0.02);
  EXPECT_LT(relative(shipped.t0, chip.t0), 0.02);
}

TEST(Calibration, MatrixProductsFromBertLarge) {
  const Soc shipped = soc("910A");
  Soc chip = shipped;
  chip.efficiency_matmul = solve(0.05, 1, 96 / bert_sequences_per_s, [&chip](double efficiency) {
    chip.efficiency_matmul = efficiency;
    return bert_step(chip);
  });
  fmt::print("efficiency_matmul {:.4f}\n", chip.efficiency_matmul);
  EXPECT_LT(relative(shipped.efficiency_matmul, chip.efficiency_matmul), 0.02);
}

TEST(Calibration, MatrixProductsFromSquaresOn910B) {
  const Soc shipped = soc("910B2");
  Soc chip = shipped;
  chip.efficiency_matmul = solve(0.05, 1, 1 / matmul_bf16, [&chip](double efficiency) {
    chip.efficiency_matmul = efficiency;
    return 1 / matmul_speed(DataType::bf16, chip);
  });
  fmt::print("efficiency_matmul {:.4f}\n", chip.efficiency_matmul);
  EXPECT_LT(relative(shipped.efficiency_matmul, chip.efficiency_matmul), 0.01);
  EXPECT_LT(relative(matmul_speed(DataType::bf16, chip), matmul_bf16), 0.01);
  // Not fitted: the efficiency of bf16 at the fp32 peak.
  EXPECT_LT(relative(matmul_speed(DataType::fp32, chip), matmul_fp32), 0.10);
}

struct Comparison {
  const char* what;
  double published;
  double modelled;
  const char* unit;
  const char* use;
};

std::string row(const Comparison& line) {
  // Adding 0 turns a deviation that rounds to -0 into +0.
  const double per_cent = std::round(1000 * (line.modelled / line.published - 1)) / 10 + 0.0;
  return fmt::format("| {} | {:.4g} {} | {:.4g} {} | {:+.1f} % | {} |", line.what, line.published, line.unit,
                     line.modelled, line.unit, per_cent, line.use);
}

TEST(Calibration, TheReadmePrintsModelledAgainstPublished) {
  const Soc a1 = soc("910A");
  const Soc b2 = soc("910B2");
  const double bert = 96 / bert_step(a1);
  const Comparison table[] = {
      {"ResNet50 v1.5, batch 32, Ascend910A, MindSpore 0.2.0", resnet50_batch32 * 1e3, resnet50_step(32, a1) * 1e3,
       "ms", "fitted (t0)"},
      {"ResNet50 v1.5, batch 256, Ascend910A, MindSpore 0.5.0", resnet50_batch256 * 1e3, resnet50_step(256, a1) * 1e3,
       "ms", "fitted (convolutions)"},
      {"BERT-Large, sequence 128, batch 96, Ascend910A, MindSpore 0.5.0", bert_sequences_per_s, bert, "seq/s",
       "fitted (matrix products)"},
      {"BERT-Large, the same on MindSpore 0.2.0", bert_sequences_per_s_older, bert, "seq/s", "older software"},
      {"bf16 matrix product, Ascend910B2, CANN 8.0", matmul_bf16 / 1e12, matmul_speed(DataType::bf16, b2) / 1e12,
       "TFLOPS", "fitted (matrix products)"},
      {"fp32 matrix product, Ascend910B2, CANN 8.0", matmul_fp32 / 1e12, matmul_speed(DataType::fp32, b2) / 1e12,
       "TFLOPS", "prediction"},
  };
  std::ifstream file(HCCLSIM_PLATFORM_DIR "/README.md");
  ASSERT_TRUE(file) << HCCLSIM_PLATFORM_DIR "/README.md";
  std::stringstream readme;
  readme << file.rdbuf();
  for (const Comparison& line : table) {
    EXPECT_NE(readme.str().find(row(line)), std::string::npos) << "platforms/README.md lacks\n" << row(line);
  }
}

}  // namespace
}  // namespace hcclsim::device
