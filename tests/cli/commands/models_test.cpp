// `hcclsim models`: its tables against the library, and its refusals.

#include "cli/commands/commands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/options/parse/command.hpp"

namespace hcclsim::cli {
namespace {

using testing::HasSubstr;

/// What `hcclsim models <arguments>` prints.
std::string run(const std::string& arguments) {
  Command app("hcclsim", "test");
  add_models_command(app);
  testing::internal::CaptureStdout();
  try {
    std::istringstream words("models " + arguments);
    EXPECT_EQ(app.parse({std::istream_iterator<std::string>(words), {}}), std::nullopt);
  } catch (...) {
    (void)testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

TEST(ModelsCommand, ListNamesWhatShowTakes) {
  const Json list = Json::parse(run("list --format json"));
  EXPECT_EQ(list["format_version"], 1);
  EXPECT_EQ(list["models"].size(), 72U);
  for (const Json& model : list["models"]) {
    SCOPED_TRACE(model["name"].get<std::string>());
    const Json shown = Json::parse(run("show " + model["name"].get<std::string>() + " --format json"));
    EXPECT_THAT(shown["model"].get<std::string>(), HasSubstr(model["title"].get<std::string>()));
  }
  EXPECT_THAT(run("list"), HasSubstr("ResNet50 v1.5"));
  EXPECT_EQ(lines(run("list --format csv"))[0], "name,title,note");
}

TEST(ModelsCommand, Summary) {
  EXPECT_EQ(run("show resnet50"),
            "ResNet50 v1.5, input 32x3x224x224, O2, momentum\n"
            "Parameters  25,557,032 in 161 tensors, gradients 102.23 MB fp32\n"
            "GFLOP       forward 264.768, backward 520.323\n"
            "Kernels     541 = forward 164, backward 216, update 161\n"
            "Activations 1349.2 MB at the peak\n");
  const Json summary = Json::parse(run("show resnet50 --batch 1 --classes 1001 --fc-bias off --amp O3 --format json"));
  EXPECT_EQ(summary["parameters"], 25'559'081 - 1001);
  EXPECT_EQ(summary["parameter_tensors"], 160);
  EXPECT_EQ(summary["gradient_bytes"], (25'559'081 - 1001) * 2);
  EXPECT_EQ(summary["input"], Json({1, 3, 224, 224}));
  EXPECT_EQ(lines(run("show resnet50 --format csv")).size(), 2U);
}

TEST(ModelsCommand, Tables) {
  const auto gradients = lines(run("show resnet50 --gradients --format csv"));
  ASSERT_EQ(gradients.size(), 162U);
  EXPECT_EQ(gradients[0], "production_index,parameter_index,name,elements,bytes,cumulative_share_percent,kernel");
  EXPECT_THAT(gradients[1], HasSubstr("0,160,fc.bias,1000,4000,"));
  EXPECT_THAT(gradients[161], HasSubstr("160,0,conv1.weight,9408,37632,100.0,"));

  const auto parameters = lines(run("show resnet50 --parameters --format csv"));
  ASSERT_EQ(parameters.size(), 162U);
  EXPECT_EQ(parameters[1], "0,conv1.weight,64x3x7x7,9408");

  const Json kernels = Json::parse(run("show resnet50 --kernels --format json"))["kernel_list"];
  ASSERT_EQ(kernels.size(), 541U);
  EXPECT_EQ(kernels[1]["name"], "conv1:forward+reduce");
  EXPECT_EQ(kernels[1]["k"], 4 * 49);
  EXPECT_EQ(kernels[540]["name"], "conv1.weight:momentum");
  EXPECT_EQ(kernels[540]["phase"], "update");

  const Json layers = Json::parse(run("show resnet50 --batch 1 --operators --format json"))["layers"];
  EXPECT_EQ(layers[0]["name"], "conv1");
  EXPECT_EQ(layers[0]["forward_flops"], 236'027'904);
  EXPECT_EQ(layers[0]["output"], Json({1, 64, 112, 112}));

  // Text: the columns of numbers end at the same place in every line.
  const auto text = lines(run("show mlp:784,512,10 --operators"));
  ASSERT_EQ(text.size(), 11U);
  EXPECT_EQ(text[6], "Layer  Operator  Output  Parameters  Forward FLOP  Backward FLOP");
  EXPECT_EQ(text[7], "fc1    linear    32x512     401,920    25,690,112     25,690,112");
}

TEST(ModelsCommand, Refusals) {
  EXPECT_THROW((void)run("show resnet51"), Error);
  EXPECT_THROW((void)run("show resnet50 --batch 0"), Error);
  EXPECT_THROW((void)run("show resnet50 --input 31"), Error);
  EXPECT_THROW((void)run("show resnet50 --amp O1"), Error);
  EXPECT_THROW((void)run("show resnet50 --optimizer none"), Error);
  EXPECT_THROW((void)run("show resnet50 --fusion some"), Error);
  EXPECT_THROW((void)run("show"), Error);
  EXPECT_THROW((void)run("show resnet50 --batch -1"), Error);
  EXPECT_THROW((void)run("show resnet50 --batch many"), Error);
  EXPECT_THROW((void)run("show resnet50 --fc-bias maybe"), Error);
  EXPECT_THROW((void)run("show resnet50 --format xml"), Error);
  EXPECT_THROW((void)run("show resnet50 --gradients --kernels"), Error);
  EXPECT_THROW((void)run("list resnet50"), Error);
}

}  // namespace
}  // namespace hcclsim::cli
