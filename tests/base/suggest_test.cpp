#include "base/suggest.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hcclsim {
namespace {

const std::vector<std::string> models{"resnet18", "resnet50", "vgg16", "alexnet"};

TEST(Nearest, OneEditAway) {
  EXPECT_EQ(nearest("resnt50", models), "resnet50");    // a letter is missing
  EXPECT_EQ(nearest("ressnet50", models), "resnet50");  // one too many
  EXPECT_EQ(nearest("vgg17", models), "vgg16");
  EXPECT_EQ(nearest("aelxnet", models), "alexnet");  // swapped
}

TEST(Nearest, Completes) {
  EXPECT_EQ(nearest("vg", models), "vgg16");
  EXPECT_EQ(nearest("resnet", models), "resnet18");  // the first of equals
}

TEST(Nearest, NothingNear) {
  EXPECT_EQ(nearest("bert", models), "");
  EXPECT_EQ(nearest("", models), "");
  EXPECT_EQ(nearest("a", {}), "");
  const std::vector<std::string> levels{"0", "1"};
  EXPECT_EQ(nearest("2", levels), "");  // has nothing of any of them
  EXPECT_EQ(did_you_mean("bert", models), "");
}

TEST(Nearest, Sentence) { EXPECT_EQ(did_you_mean("vgg-16", models), "; did you mean vgg16?"); }

}  // namespace
}  // namespace hcclsim
