#include "base/names.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace hcclsim {
namespace {

TEST(Names, OfTheRowsOfATable) {
  struct Row {
    std::string_view name;
  };
  const std::vector<Row> rows{{"ring"}, {"mesh"}};
  EXPECT_EQ(names_in(rows, &Row::name), "ring, mesh");
  EXPECT_EQ(names_in(rows, &Row::name, "|"), "ring|mesh");
  EXPECT_EQ(names_in(std::vector<Row>{}, &Row::name), "");
}

TEST(Names, CountedThings) {
  EXPECT_EQ(counted(0, "stage"), "0 stages");
  EXPECT_EQ(counted(1, "stage"), "1 stage");
  EXPECT_EQ(counted(1, "axis", "axes"), "1 axis");
  EXPECT_EQ(counted(12, "axis", "axes"), "12 axes");
}

}  // namespace
}  // namespace hcclsim
