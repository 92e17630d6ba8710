// Programs that fuse the products of query, key and value, or of gate and up, otherwise than the model does.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/zoo/zoo.hpp"
#include "study/files/profile/import.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::study {
namespace {

using testing::Contains;
using testing::HasSubstr;

/// A product of 64 rows: inner dimension and columns.
struct MeasuredProduct {
  int inner = 0;
  int columns = 0;
  double us = 0;
};

/// kernel_details.csv of PyTorch's profiler: the forward products, a kernel of the loss, and of each in the reverse
/// order the gradients of data and weight, which take twice and three times as long.
std::string profile_of(const std::vector<MeasuredProduct>& products, bool shapes = true) {
  std::string text = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Output Shapes\n";
  double date = 1000;
  const auto launch = [&](const std::string& name, const std::string& type, double us, const std::string& of) {
    text += fmt::format("1,aclnn{},{},AI_CORE,{},{},{}\n", name, type, date, us, of);
    date += us;
  };
  const auto product = [&](double us, const std::string& inputs, const std::string& output) {
    const std::string of = shapes ? fmt::format(R"("""{}""","""{}""")", inputs, output) : "N/A,N/A";
    launch("Matmul_MatMulV3Common_MatMulV3", "MatMulV3", us, of);
  };
  for (const auto& [inner, columns, us] : products) {
    product(us, fmt::format("64,{};{},{}", inner, columns, inner), fmt::format("64,{}", columns));  // the weight lies
  }
  launch("NLLLossBackward_NLLLossGrad_NLLLossGrad", "NLLLossGrad", 1, "N/A,N/A");
  const std::vector<MeasuredProduct> backward(products.rbegin(), products.rend());
  for (const auto& [inner, columns, us] : backward) {
    product(2 * us, fmt::format("64,{};{},{}", columns, columns, inner), fmt::format("64,{}", inner));
    product(3 * us, fmt::format("64,{};64,{}", columns, inner), fmt::format("{},{}", columns, inner));
  }
  return test::write_temporary("kernel_details.csv", text);
}

class FusedImport {
 public:
  FusedImport(const models::ModelOptions& model, const std::string& file)
      : graph_(make_model(model)),
        program_(imported_program(read_profiles(std::vector{file}), graph_, device::find_soc("Ascend910B2", notes_), {},
                                  1, imported, notes_)) {}

  /// Of the kernels with these names together.
  [[nodiscard]] double us(const std::vector<std::string>& operators, const std::string& what) const {
    double sum = 0;
    for (const models::Kernel& kernel : program_.kernels) {
      for (const std::string& op : operators) {
        if (kernel.name.starts_with(fmt::format("{}:{}", op, what))) sum += kernel.duration * 1e6;
      }
    }
    return sum;
  }

  ImportedProfile imported;

 private:
  std::vector<std::string> notes_;
  models::Graph graph_;
  models::Program program_;
};

const models::ModelOptions small_llama{
    .name = "llama2-7b", .batch = 2, .sequence = 32, .layers = 1, .hidden = 64, .heads = 4, .vocabulary = 128};

int intermediate_size() {
  for (const models::Parameter& parameter : make_model(small_llama).parameters) {
    if (parameter.name.find("gate_proj") != std::string::npos) return static_cast<int>(parameter.elements / 64);
  }
  return 0;
}

TEST(FusedProducts, OfQueryKeyAndValueAndOfGateAndUp) {
  const int wide = intermediate_size();
  const FusedImport import(
      small_llama, profile_of({{64, 192, 30}, {64, 64, 11}, {64, 2 * wide, 70}, {wide, 64, 40}, {64, 128, 50}}));
  const std::string layer = "model.layers.0.";
  const std::vector<std::string> qkv{layer + "self_attn.q_proj", layer + "self_attn.k_proj",
                                     layer + "self_attn.v_proj"};
  const std::vector<std::string> gate_up{layer + "mlp.gate_proj", layer + "mlp.up_proj"};
  EXPECT_NEAR(import.us(qkv, "forward"), 30, 1e-6);
  EXPECT_NEAR(import.us({qkv[1]}, "forward"), 10, 1e-6);  // all are of one size
  EXPECT_NEAR(import.us({layer + "self_attn.o_proj"}, "forward"), 11, 1e-6);
  EXPECT_NEAR(import.us(gate_up, "forward"), 70, 1e-6);
  EXPECT_NEAR(import.us({layer + "mlp.down_proj"}, "forward"), 40, 1e-6);
  EXPECT_NEAR(import.us({"lm_head"}, "forward"), 50, 1e-6);
  // Both gradients of an operator share what both kernels take.
  EXPECT_NEAR(import.us(qkv, "data_gradient") + import.us(qkv, "weight_gradient"), 150, 1e-6);
  EXPECT_NEAR(import.us(gate_up, "data_gradient") + import.us(gate_up, "weight_gradient"), 350, 1e-6);
  EXPECT_THAT(import.imported.notes, testing::Not(Contains(HasSubstr("not matched by their order"))));
}

/// Nothing else in these profiles has a name of the model's.
TEST(FusedProducts, NeedShapesThatFit) {
  const int wide = intermediate_size();
  const std::vector<MeasuredProduct> products{
      {64, 192, 30}, {64, 64, 11}, {64, 2 * wide, 70}, {wide, 64, 40}, {64, 128, 50}};
  const auto refusal_of = [](const std::string& file) {
    return test::refusal("profile", [&] { const FusedImport import(small_llama, file); });
  };
  EXPECT_THAT(refusal_of(profile_of(products, false)), HasSubstr("no kernel has a name"));
  for (const MeasuredProduct& changed : {MeasuredProduct{64, 160, 1}, MeasuredProduct{32, 192, 1}}) {
    std::vector<MeasuredProduct> other = products;
    other[0] = changed;
    EXPECT_THAT(refusal_of(profile_of(other)), HasSubstr("no kernel has a name"));
  }
}

TEST(FusedProducts, TheOtherWayRound) {
  const models::ModelOptions gpt{
      .name = "gpt2-small", .batch = 2, .sequence = 32, .layers = 1, .hidden = 64, .heads = 4, .vocabulary = 128};
  const FusedImport import(
      gpt, profile_of(
               {{64, 64, 10}, {64, 64, 11}, {64, 64, 12}, {64, 64, 20}, {64, 256, 30}, {256, 64, 40}, {64, 128, 50}}));
  EXPECT_NEAR(import.us({"h.0.attn.c_attn"}, "forward"), 33, 1e-6);
  EXPECT_NEAR(import.us({"h.0.attn.c_proj"}, "forward"), 20, 1e-6);
  EXPECT_NEAR(import.us({"h.0.attn.c_attn"}, "data_gradient") + import.us({"h.0.attn.c_attn"}, "weight_gradient"), 165,
              1e-6);
}

}  // namespace
}  // namespace hcclsim::study
