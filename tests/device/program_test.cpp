#include "device/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/error.hpp"
#include "device/kernel_cost.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training/programs.hpp"

namespace hcclsim::device {
namespace {

using models::Phase;
using models::Program;
using test::compute_time;
using test::gradient_of;
using test::kernels_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Soc soc_of(std::string_view name = "910A") {
  std::vector<std::string> notes;
  return find_soc(name, notes);
}

Program resnet50(std::uint32_t batch, const ProgramOptions& options = {}) {
  std::vector<std::string> notes;
  return make_program(models::make_model({.name = "resnet50", .batch = batch}), soc_of(), options, notes);
}

TEST(Program, ResNet50Shape) {
  const Program step = resnet50(32);
  EXPECT_EQ(step.title, "ResNet50 v1.5");
  EXPECT_EQ(step.batch, 32U);
  EXPECT_EQ(step.gradient_type(), DataType::fp32);
  ASSERT_EQ(step.gradients.size(), 161U);
  EXPECT_EQ(step.gradients.front().name, "fc.bias");
  EXPECT_EQ(step.gradients.back().name, "conv1.weight");
  EXPECT_EQ(step.gradients.back().parameter, 0U);
  std::uint64_t elements = 0;
  std::uint32_t previous = 0;
  for (const models::Gradient& gradient : step.gradients) {
    SCOPED_TRACE(gradient.name);
    elements += gradient.elements;
    ASSERT_LT(gradient.kernel, step.kernels.size());
    EXPECT_EQ(step.kernels[gradient.kernel].phase, models::Phase::backward);
    EXPECT_GE(gradient.kernel, previous);
    previous = gradient.kernel;
    EXPECT_EQ(kernels_of(step, gradient.name, Phase::update).size(), 1U);
  }
  EXPECT_EQ(elements, 25557032U);
  EXPECT_EQ(kernels_of(step, "fc.bias", Phase::update).front().name, "fc.bias:momentum");
}

TEST(Program, MomentumUpdateByHand) {
  // Five fp32 passes over the 2048000 weights of the classifier: 40.96 MB at 1.024 TB/s are 40 us.
  const Program step = resnet50(32);
  const models::Gradient& classifier = gradient_of(step, "fc.weight");
  EXPECT_EQ(classifier.elements, 2048000U);
  EXPECT_NEAR(kernels_of(step, "fc.weight", Phase::update).front().duration, soc_of().t0 + 40e-6, 1e-12);
}

TEST(Program, KernelsHaveTheTimesOfTheCostModel) {
  const Soc chip = soc_of();
  const models::Graph graph = models::make_model({.name = "resnet18", .batch = 4});
  const Program lowered =
      models::lower(graph, {.precision = models::precision_of(models::Amp::o2), .communication = DataType::fp32});
  std::vector<std::string> notes;
  const Program step = make_program(graph, chip, {}, notes);
  EXPECT_THAT(notes, IsEmpty());
  ASSERT_EQ(step.micro_batch_kernels, lowered.kernels.size());
  Seconds total = 0;
  for (std::size_t i = 0; i < lowered.kernels.size(); ++i) {
    SCOPED_TRACE(lowered.kernels[i].name);
    EXPECT_EQ(step.kernels[i].name, lowered.kernels[i].name);
    EXPECT_EQ(step.kernels[i].duration, kernel_time(lowered.kernels[i], chip));
    total += step.kernels[i].duration;
  }
  for (const models::Gradient& gradient : step.gradients) {
    total += kernels_of(step, gradient.name, Phase::update).front().duration;
  }
  EXPECT_NEAR(compute_time(step), total, 1e-12);
}

TEST(Program, CommunicationInFp16CastsBothWays) {
  const Program plain = resnet50(32);
  const Program step = resnet50(32, {.gradient_type = DataType::fp16});
  EXPECT_EQ(step.gradient_type(), DataType::fp16);
  EXPECT_EQ(step.micro_batch_kernels, plain.micro_batch_kernels + 161);
  EXPECT_EQ(kernels_of(step, "fc.bias", Phase::update).size(), 2U);
  // An fp16 buffer beside the fp32 gradients.
  EXPECT_EQ(hbm_account(step, 0).gradients, hbm_account(plain, 0).gradients / 2 * 3);
}

TEST(Program, ChecksReadEveryGradientOnce) {
  const Program plain = resnet50(32);
  const Program step = resnet50(32, {.checks = {.overflow = true, .global_norm = true}});
  const auto checks = kernels_of(step, "fc.weight", Phase::check);
  ASSERT_EQ(checks.size(), 2U);
  const models::Kernel& overflow = checks.front();
  const models::Kernel& norm = checks.back();
  EXPECT_EQ(overflow.name, "fc.weight:overflow_check");
  EXPECT_EQ(norm.name, "fc.weight:norm");
  EXPECT_EQ(overflow.phase, Phase::check);
  // 2048000 fp32 elements and 4 bytes of result at 1.024 TB/s.
  EXPECT_NEAR(overflow.duration, soc_of().t0 + (8192000 + 4) / 1.024e12, 1e-12);
  EXPECT_NEAR(norm.duration, overflow.duration, 1e-15);
  // The factor of the clip from 161 partial sums: one cycle of the vector cores.
  EXPECT_NEAR(kernels_of(step, "", Phase::check).front().duration, soc_of().t0 + 1e-9, 1e-15);
  EXPECT_TRUE(step.overflow_flag);
  EXPECT_EQ(hbm_account(step, 0).peak(), hbm_account(plain, 0).peak() + 4 + (161 + 1) * 4);
  EXPECT_GT(compute_time(step), compute_time(plain) + 322 * soc_of().t0);
}

TEST(Program, ChecksAreOfTheTypeThatIsCommunicated) {
  const Program step = resnet50(32, {.gradient_type = DataType::fp16, .checks = {.overflow = true}});
  EXPECT_NEAR(kernels_of(step, "fc.weight", Phase::check).at(0).duration, soc_of().t0 + (4096000 + 4) / 1.024e12,
              1e-12);
  EXPECT_TRUE(kernels_of(step, "", Phase::check).empty());
  const Program clipped = resnet50(32, {.checks = {.global_norm = true}});
  EXPECT_EQ(kernels_of(clipped, "fc.bias", Phase::check).size(), 1U);
  EXPECT_FALSE(clipped.overflow_flag);
}

TEST(Program, HbmByHand) {
  // Linear 4 -> 3 with ReLU, linear 3 -> 2, batch 2, all fp32: 15 + 8 = 23 parameters.
  std::vector<std::string> notes;
  const Program step =
      make_program(models::make_model({.name = "mlp:4,3,2", .batch = 2}), soc_of(),
                   {.precision = models::precision_of(models::Amp::o0), .optimizer = models::Optimizer::adam}, notes);
  const HbmAccount hbm = hbm_account(step, 1000);
  EXPECT_EQ(hbm.weights, 23U * 4);
  EXPECT_EQ(hbm.gradients, 23U * 4);
  EXPECT_EQ(hbm.optimizer_state, 23U * 8);
  // The peak is in the loss: input 2·4, hidden 2·3, logits 2·2 and their gradient 2·2, and 6 bits of ReLU mask.
  EXPECT_EQ(hbm.activations, (8U + 6 + 4 + 4) * 4 + 1);
  EXPECT_EQ(hbm.communication, 1000U);
  EXPECT_EQ(hbm.peak(), 92U + 92 + 184 + 89 + 1000);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes.front(), AllOf(HasSubstr("Ascend910A"), HasSubstr("no fp32 cube")));
}

TEST(Program, HbmOfResNet50) {
  const HbmAccount small = hbm_account(resnet50(32), 0);
  const HbmAccount large = hbm_account(resnet50(256), 0);
  // fp32 masters of all, fp16 casts of all but 53120 batch norm parameters and the bias of the classifier.
  EXPECT_EQ(small.weights, 25557032U * 4 + (25557032U - 53120 - 1000) * 2);
  EXPECT_EQ(small.gradients, 25557032U * 4);
  EXPECT_EQ(small.optimizer_state, 25557032U * 4);
  EXPECT_EQ(large.weights, small.weights);
  // Outputs of the convolutions (11.1 million per image) and of batch norm and ReLU (10.6 million) in fp16: 43 MB.
  EXPECT_GT(small.activations, 32U * 40'000'000U);
  EXPECT_LT(small.activations, 32U * 55'000'000U);
  EXPECT_NEAR(static_cast<double>(large.activations) / static_cast<double>(small.activations), 8, 0.01);
  EXPECT_EQ(check_hbm(large, soc_of(), HbmCheck::error), "");
}

TEST(Program, HbmExceeded) {
  const HbmAccount account{.weights = Bytes{3} << 30,
                           .gradients = Bytes{4} << 30,
                           .optimizer_state = Bytes{5} << 30,
                           .activations = Bytes{20} << 30,
                           .communication = Bytes{1} << 29};
  Soc chip = soc_of();
  const std::string warning = check_hbm(account, chip, HbmCheck::warn);
  EXPECT_THAT(warning, AllOf(HasSubstr("Ascend910A"), HasSubstr("32.50 GiB of 32.00 GiB"), HasSubstr("weights 3.00"),
                             HasSubstr("gradients 4.00"), HasSubstr("optimizer state 5.00"),
                             HasSubstr("activations 20.00"), HasSubstr("communication buffers 0.50")));
  try {
    (void)check_hbm(account, chip, HbmCheck::error);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::simulated_failure);
    EXPECT_EQ(error.kind(), "hbm");
    EXPECT_THAT(error.what(), AllOf(HasSubstr(warning), HasSubstr("--hbm-check warn")));
  }
  chip.hbm_bytes = account.peak();
  EXPECT_EQ(check_hbm(account, chip, HbmCheck::error), "");
}

TEST(Program, GradientTypesThatCannotBe) {
  std::vector<std::string> notes;
  const models::Graph graph = models::make_model({.name = "resnet18", .batch = 1});
  EXPECT_THROW((void)make_program(graph, soc_of(), {.gradient_type = DataType::int8}, notes), Error);
  EXPECT_THROW((void)make_program(graph, soc_of("910A"), {.gradient_type = DataType::bf16}, notes), Error);
  EXPECT_EQ(make_program(graph, soc_of("910B2"), {.gradient_type = DataType::bf16}, notes).gradient_type(),
            DataType::bf16);
}

models::GradientProfile profile() {
  models::GradientProfile measured;
  measured.title = "measured.csv";
  measured.gradients = {{.name = "c", .bytes = 400, .ready_s = 0.010},
                        {.name = "b", .bytes = 4000, .ready_s = 0.010},
                        {.name = "a", .bytes = 40000, .ready_s = 0.025}};
  return measured;
}

TEST(Program, FromAProfile) {
  std::vector<std::string> notes;
  const Program step = make_program(profile(), soc_of(), {}, notes);
  EXPECT_EQ(step.title, "measured.csv");
  ASSERT_EQ(step.micro_batch_kernels, 2U);
  EXPECT_EQ(step.kernels.front().duration, 0.010);
  EXPECT_NEAR(step.micro_batch().back().duration, 0.015, 1e-15);
  ASSERT_EQ(step.gradients.size(), 3U);
  EXPECT_EQ(gradient_of(step, "c").kernel, 0U);
  EXPECT_EQ(gradient_of(step, "b").kernel, 0U);
  const models::Gradient& last = gradient_of(step, "a");
  EXPECT_EQ(last.kernel, 1U);
  EXPECT_EQ(last.parameter, 0U);
  EXPECT_EQ(last.elements, 10000U);
  // 40000 bytes five times over 1.024 TB/s.
  EXPECT_NEAR(kernels_of(step, "a", Phase::update).front().duration, soc_of().t0 + 200000 / 1.024e12, 1e-15);
  EXPECT_EQ(hbm_account(step, 0).weights, 44400U);
  EXPECT_EQ(hbm_account(step, 0).gradients, 44400U);
  EXPECT_EQ(hbm_account(step, 0).optimizer_state, 44400U);
  EXPECT_EQ(hbm_account(step, 0).activations, 0U);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes.front(), AllOf(HasSubstr("measured.csv"), HasSubstr("activations")));
}

TEST(Program, FromAProfileInFp16) {
  std::vector<std::string> notes;
  const Program step = make_program(profile(), soc_of(), {.gradient_type = DataType::fp16}, notes);
  EXPECT_EQ(gradient_of(step, "a").elements, 20000U);
  EXPECT_EQ(hbm_account(step, 0).weights, 88800U);             // fp32 masters
  EXPECT_EQ(hbm_account(step, 0).gradients, 44400U);           // as communicated
  EXPECT_EQ(kernels_of(step, "a", Phase::update).size(), 2U);  // cast and momentum
}

TEST(Program, ProfileWithOddSizes) {
  models::GradientProfile odd = profile();
  models::ProfiledGradient& b = odd.gradients.at(1);
  ASSERT_EQ(b.name, "b");
  b.bytes = 4002;
  std::vector<std::string> notes;
  try {
    (void)make_program(odd, soc_of(), {}, notes);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("b has"), HasSubstr("4002"), HasSubstr("fp32")));
  }
  const Program in_fp16 = make_program(odd, soc_of(), {.gradient_type = DataType::fp16}, notes);
  EXPECT_EQ(gradient_of(in_fp16, "b").elements, 2001U);
}

}  // namespace
}  // namespace hcclsim::device
