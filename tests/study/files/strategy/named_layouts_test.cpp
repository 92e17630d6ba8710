#include "study/files/strategy/named_layouts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Json table(const std::string& text) { return Json::parse(text); }

TEST(NamedLayouts, NamesBecomeAxesOfTheMatrix) {
  const hccl::LayoutStrategy layout = read_named_layouts("f.toml:1: 'fc'", table(R"({
      "device_matrix": [2, 2, 2], "alias_name": ["dp", "sp", "mp"],
      "strategy": [["dp", "None"], ["mp", ["sp", "dp"]], []], "out_strategy": ["dp", "mp"]})"));
  EXPECT_EQ(layout.matrix, (hccl::DeviceMatrix{{2, 2, 2}}));
  ASSERT_EQ(layout.inputs.size(), 3U);
  EXPECT_EQ(layout.inputs[0], (hccl::TensorMap{{2}, {}}));
  EXPECT_EQ(layout.inputs[1], (hccl::TensorMap{{0}, {1, 2}}));
  EXPECT_TRUE(layout.inputs[2].empty());
  EXPECT_EQ(layout.output, (hccl::TensorMap{{2}, {0}}));
}

TEST(NamedLayouts, ErrorsAreOfThePythonClassesThatMindSporeRaises) {
  const auto message = [](std::string_view kind, const std::string& text) {
    const std::string found = test::refusal(kind, [&] { (void)read_named_layouts("f.toml:1: 'fc'", table(text)); });
    EXPECT_THAT(found, StartsWith("f.toml:1: 'fc': "));
    return found;
  };
  const std::string strategy = R"(, "strategy": [["dp"]]})";
  EXPECT_THAT(message("type-error", R"({"device_matrix": 2, "alias_name": ["dp"])" + strategy), HasSubstr("is a list"));
  EXPECT_THAT(message("type-error", R"({"device_matrix": [2.5], "alias_name": ["dp"])" + strategy),
              HasSubstr("whole numbers, got 2.5"));
  EXPECT_THAT(message("type-error", R"({"device_matrix": [true], "alias_name": ["dp"])" + strategy),
              HasSubstr("whole numbers, got true"));
  EXPECT_THAT(message("type-error", R"({"device_matrix": [2], "alias_name": [1])" + strategy), HasSubstr("got 1"));
  EXPECT_THAT(message("type-error", R"({"device_matrix": [2], "alias_name": ["dp"], "strategy": ["dp"]})"),
              HasSubstr("a list of names for each tensor"));
  EXPECT_THAT(message("value-error", R"({"device_matrix": [0], "alias_name": ["dp"])" + strategy),
              HasSubstr("sizes from 1 to"));
  EXPECT_THAT(message("value-error", R"({"device_matrix": [2, 2], "alias_name": ["dp"])" + strategy),
              HasSubstr("has 2 axes, alias_name has 1 name"));
  EXPECT_THAT(message("value-error", R"({"device_matrix": [2], "alias_name": ["None"])" + strategy),
              HasSubstr("the name 'None'"));
  EXPECT_THAT(message("value-error", R"({"device_matrix": [2, 2], "alias_name": ["dp", "dp"])" + strategy),
              HasSubstr("two axes have the name 'dp'"));
  EXPECT_THAT(message("value-error", R"({"device_matrix": [2], "alias_name": ["mp"])" + strategy),
              HasSubstr("no axis has the name 'dp'"));
  EXPECT_THAT(message("value-error", R"({"device_matrix": [2], "alias_name": ["dp"], "strategy": [["dp", "dp"]]})"),
              HasSubstr("'dp' cuts twice"));
  EXPECT_THAT(message("value-error", R"({"device_matrix": [2], "alias_name": ["dp"], "strategy": [[2, 1]]})"),
              HasSubstr("numbers of parts go without device_matrix"));
  EXPECT_THAT(message("value-error", R"({"device_matrix": [2], "alias_name": ["dp"], "out_strategy": ["dp"]})"),
              HasSubstr("strategy is missing"));
  EXPECT_THAT(message("value-error", R"({"device_matrix": [2])" + strategy), HasSubstr("alias_name is missing"));
}

}  // namespace
}  // namespace hcclsim::study
