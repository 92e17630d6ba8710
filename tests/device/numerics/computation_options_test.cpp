#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/device/numerics/onednn/reference_comparison.hpp"
#include "tests/device/numerics/sample_net.hpp"
#include "tests/support/case_name.hpp"

/// Options of programs: rounding of what a device would store as fp16 or bf16, and computing in bf16.
namespace hcclsim::device {
namespace {

using testing::HasSubstr;

models::Graph sample_graph(const std::string& model) { return models::make_model({.name = model, .batch = 4}); }

struct Result {
  StepOutput output;
  std::vector<float> flat;
  std::vector<test::Tensor> gradients;  ///< production order, row-major
};

Result step(const models::Graph& graph, const ComputationOptions& options, const StepInput& input = {}) {
  const SampleNet net(graph, test::initial_parameters(graph, 1), options);
  Workspace workspace(net.computation);
  Result result{.output = {}, .flat = net.flat(), .gradients = {}};
  result.output = workspace.step(net.weights, batch_of(graph, test::oracle_batch(graph, 1, 0)), input, result.flat);
  for (std::size_t i = 0; i < net.computation.parameters().size(); ++i) {
    result.gradients.push_back(net.plain(i, result.flat));
  }
  return result;
}

double product(const std::vector<test::Tensor>& left, const std::vector<test::Tensor>& right) {
  double sum = 0;
  for (std::size_t t = 0; t < left.size(); ++t) {
    for (std::size_t i = 0; i < left[t].size(); ++i) sum += left[t][i] * right[t][i];
  }
  return sum;
}

double cosine(const std::vector<test::Tensor>& left, const std::vector<test::Tensor>& right) {
  return product(left, right) / std::sqrt(product(left, left) * product(right, right));
}

/// |left − right| / |right|.
double distance(const std::vector<test::Tensor>& left, const std::vector<test::Tensor>& right) {
  const double squares = product(left, left) - 2 * product(left, right) + product(right, right);
  return std::sqrt(std::max(squares, 0.0) / product(right, right));
}

std::vector<test::Tensor> reference_gradients(const models::Graph& graph, const ComputationOptions& options) {
  test::ReferenceStep reference =
      test::reference_step(graph, test::initial_parameters(graph, 1), test::oracle_batch(graph, 1, 0),
                           reference_options(graph, options, {}));
  std::vector<test::Tensor> gradients;
  for (const std::uint32_t parameter : production_order(graph)) {
    gradients.push_back(std::move(reference.gradients[parameter]));
  }
  return gradients;
}

struct RoundingCase {
  std::string model;
  DataType type;
};

class RoundedPrograms : public testing::TestWithParam<RoundingCase> {};

TEST_P(RoundedPrograms, GradientsCanBeStored) {
  std::vector<float> gradients = step(sample_graph(GetParam().model), {.round = GetParam().type}).flat;
  const std::vector<float> before = gradients;
  EXPECT_FALSE(round_in_place(GetParam().type, Overflow::infinity, gradients));
  EXPECT_EQ(gradients, before);
}

TEST_P(RoundedPrograms, IsWhereTheReferenceRounds) {
  const models::Graph graph = sample_graph(GetParam().model);
  const ComputationOptions options{.round = GetParam().type};
  const Result rounded = step(graph, options);
  const std::vector<test::Tensor> exact = reference_gradients(graph, {});
  const std::vector<test::Tensor> same = reference_gradients(graph, options);
  const double loss = distance(rounded.gradients, exact);
  // What lies next to the middle between two numbers of the type may be rounded differently in fp32 and in fp64: rare
  // for bf16, more often for the finer fp16.
  EXPECT_LT(distance(rounded.gradients, same), loss * (GetParam().type == DataType::bf16 ? 0.25 : 0.75));
  EXPECT_GT(loss, unit_roundoff(GetParam().type) / 4);
  EXPECT_LT(loss, unit_roundoff(GetParam().type) * 64);
}

INSTANTIATE_TEST_SUITE_P(
    Types, RoundedPrograms,
    testing::Values(RoundingCase{"lenet", DataType::fp16}, RoundingCase{"lenet", DataType::bf16},
                    RoundingCase{"smallres", DataType::fp16}, RoundingCase{"smallres", DataType::bf16},
                    RoundingCase{"tinygpt", DataType::fp16}, RoundingCase{"tinygpt", DataType::bf16}),
    [](const auto& info) { return info.param.model + "_" + std::string(name_of(info.param.type)); });

TEST(RoundedProgram, LossScaleSavesSmallGradients) {
  const models::Graph graph = sample_graph("lenet");
  const ComputationOptions fp16{.round = DataType::fp16};
  // Gradients so small that fp16 has no numbers for them, and the same scaled back into its range.
  const Result lost = step(graph, fp16, {.loss_scale = 0x1p-30F});
  EXPECT_EQ(product(lost.gradients, lost.gradients), 0);
  EXPECT_FALSE(lost.output.overflow);
  const Result exact = step(graph, {}, {.loss_scale = 64});
  EXPECT_LT(distance(step(graph, fp16, {.loss_scale = 64}).gradients, exact.gradients), 2e-2);
}

TEST(RoundedProgram, OverflowIsReportedAndSaturates) {
  const models::Graph graph = sample_graph("lenet");
  const StepInput huge{.loss_scale = 0x1p20F};
  const Result infinite = step(graph, {.round = DataType::fp16}, huge);
  EXPECT_TRUE(infinite.output.overflow);
  EXPECT_FALSE(std::ranges::all_of(infinite.flat, [](float value) { return std::isfinite(value); }));
  const Result cut = step(graph, {.round = DataType::fp16, .overflow = Overflow::saturate}, huge);
  EXPECT_TRUE(cut.output.overflow);
  EXPECT_EQ(*std::ranges::max_element(cut.flat), 65504);
  EXPECT_FALSE(step(graph, {.round = DataType::fp16}).output.overflow);
}

TEST(RoundedProgram, RefusesOtherTypes) {
  const models::Graph graph = sample_graph("lenet");
  const auto refused = [&](const ComputationOptions& options) -> std::string {
    try {
      const Computation computation(graph, production_order(graph), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "dtype");
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refused({.round = DataType::int8}), HasSubstr("can be rounded to fp16 or bf16"));
  EXPECT_THAT(refused({.compute = DataType::fp16}), HasSubstr("can be fp32 or bf16"));
  EXPECT_THAT(refused({.compute = DataType::bf16, .round = DataType::fp16}), HasSubstr("are computed in fp32"));
}

TEST(LabelSmoothing, RefusedOutOfRange) {
  const models::Graph graph = sample_graph("lenet");
  for (const float smoothing : {-0.1F, 1.0F, std::nanf("")}) {
    SCOPED_TRACE(fmt::format("label smoothing {}", smoothing));
    try {
      const Computation computation(graph, production_order(graph), {.label_smoothing = smoothing});
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("label smoothing must be at least 0 and less than 1"));
    }
  }
}

class Bf16Compute : public testing::TestWithParam<std::string> {};

TEST_P(Bf16Compute, IsCloseToFp32) {
  if (!bf16_supported()) GTEST_SKIP() << "this processor has no AVX-512";
  const models::Graph graph = sample_graph(GetParam());
  const Result exact = step(graph, {});
  const Result result = step(graph, {.compute = DataType::bf16});
  EXPECT_NEAR(result.output.loss, exact.output.loss, 1e-2 * exact.output.loss);
  EXPECT_GT(cosine(result.gradients, exact.gradients), 0.99);
  EXPECT_GT(distance(result.gradients, exact.gradients), 1e-4);  // it is not fp32
}

INSTANTIATE_TEST_SUITE_P(Models, Bf16Compute, testing::Values("mlp:30,20,10", "lenet", "smallres", "tinygpt"),
                         [](const auto& tested) { return test::case_name(tested.param); });

TEST(Bf16DeathTest, RefusedWithoutAvx512) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own: oneDNN asks for the limit once
  EXPECT_EXIT(
      {
        setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
        try {
          step(sample_graph("lenet"), {.compute = DataType::bf16});
        } catch (const Error& error) {
          fmt::print(stderr, "{}\n", error.what());
          std::exit(static_cast<int>(error.code()));
        }
      },
      testing::ExitedWithCode(2), "takes a processor with AVX-512, which this one is not: compute in fp32");
}

}  // namespace
}  // namespace hcclsim::device
