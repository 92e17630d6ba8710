#include "study/compare/sweep/grid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<std::string> words(std::string_view text) { return axis_values("--x", text, ValueForm::word); }
std::vector<std::string> lists(std::string_view text) { return axis_values("--x", text, ValueForm::list); }

std::string fault_of(std::string_view text) {
  try {
    static_cast<void>(words(text));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(AxisValues, RangesOfSizes) {
  const auto sizes = [](std::string_view text) { return axis_values("--size", text, ValueForm::size); };
  EXPECT_THAT(sizes("1K:64M:x16"), ElementsAre("1K", "16K", "256K", "4M", "64M"));
  EXPECT_THAT(sizes("512K:2M:512K"), ElementsAre("512K", "1M", "1536K", "2M"));
  EXPECT_THAT(sizes("512:1K:x1.5"), ElementsAre("512", "768"));
  EXPECT_THAT(sizes("1G:1M:x0.03125"), ElementsAre("1G", "32M", "1M"));
  EXPECT_THAT(sizes("1024:4096:x2,8M"), ElementsAre("1024", "2048", "4096", "8M"));
  EXPECT_THROW(static_cast<void>(sizes("1K:1GBps:x2")), Error);
}

TEST(Grid, ValuesOfAnAxis) {
  EXPECT_THAT(words("16,32, 64"), ElementsAre("16", "32", "64"));
  EXPECT_THAT(words("16,32,16"), ElementsAre("16", "32"));
  EXPECT_THAT(words("level0:NA;level1:ring"), ElementsAre("level0:NA;level1:ring"));
  EXPECT_THAT(lists("80,20;60,40"), ElementsAre("80,20", "60,40"));
  EXPECT_THAT(words("dynamic:1024:100"), ElementsAre("dynamic:1024:100"));
}

TEST(Grid, Ranges) {
  EXPECT_THAT(words("1:4:1"), ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(words("4:1:-1.5"), ElementsAre("4", "2.5", "1"));
  EXPECT_THAT(words("0:1:0.1").back(), "1");  // ten tenths
  EXPECT_EQ(words("0:1:0.1").size(), 11U);
  EXPECT_EQ(words("0:1:0.1")[3], "0.3");
  EXPECT_THAT(words("10GBps:20GBps:5GBps"), ElementsAre("10GBps", "15GBps", "20GBps"));
  EXPECT_THAT(words("1K:64K:x4"), ElementsAre("1K", "4K", "16K", "64K"));
  EXPECT_THAT(words("7:7:1"), ElementsAre("7"));
  EXPECT_THAT(words("1:2:1,9"), ElementsAre("1", "2", "9"));
  EXPECT_THAT(lists("20:30:10,5"), ElementsAre("20,5", "30,5"));
  EXPECT_THAT(lists("1:2:1,8:9:1;3"), ElementsAre("1,8", "2,8", "1,9", "2,9", "3"));
}

TEST(Grid, RefusesWhatIsNoRange) {
  EXPECT_THAT(fault_of("5:1:1"), HasSubstr("does not lead from its first to its last"));
  EXPECT_THAT(fault_of("1:5:0"), HasSubstr("does not lead"));
  EXPECT_THAT(fault_of("1:5:x1"), HasSubstr("does not lead"));
  EXPECT_THAT(fault_of("0:5:x2"), HasSubstr("does not lead"));
  EXPECT_THAT(fault_of("1us:5us:1"), HasSubstr("differ in their units"));
  EXPECT_THAT(fault_of("1:1000000000:1"), HasSubstr("'1:1000000000:1' has 1000000000 values; at most 1000000"));
  EXPECT_THAT(fault_of("1:1e300:1"), HasSubstr("has 1e+300 values"));
  EXPECT_THAT(fault_of("1:999999:1,0.5:9.5:1"), HasSubstr("has 1000009 values"));
  EXPECT_THROW(static_cast<void>(lists("1:99999:1,1:99999:1,1:99999:1")), Error);  // at once
  EXPECT_THAT(fault_of("1,,2"), HasSubstr("--x: a value of '1,,2' is empty"));
}

TEST(Grid, OneTextForOneValue) {
  EXPECT_EQ(canonical_value("032"), "32");
  EXPECT_EQ(canonical_value("000"), "0");
  EXPECT_EQ(canonical_value("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(canonical_value("1.50GBps"), "1.5GBps");
  EXPECT_EQ(canonical_value("020GBps"), "20GBps");
  EXPECT_EQ(canonical_value("1e-3"), "0.001");
  EXPECT_EQ(canonical_value("080.0,20"), "80,20");
  EXPECT_EQ(canonical_value("-1.0"), "-1");
  EXPECT_EQ(canonical_value("1.0.0"), "1.0.0");
  EXPECT_EQ(canonical_value("ring"), "ring");
  EXPECT_EQ(canonical_value("2:ring,4:nhr"), "2:ring,4:nhr");
}

TEST(Grid, RestOfPercentages) {
  EXPECT_EQ(with_rest("60"), "60,40");
  EXPECT_EQ(with_rest("60,20.5"), "60,20.5,19.5");
  EXPECT_EQ(with_rest("60,40"), "60,40");
  EXPECT_EQ(with_rest("all"), "all");
}

TEST(Grid, LastAxisRunsFastest) {
  Grid grid;
  EXPECT_EQ(grid.size(), 1U);
  grid.set({"batch", {"16", "32"}});
  grid.set({"model", {"a", "b", "c"}});
  EXPECT_EQ(grid.size(), 6U);
  EXPECT_THAT(grid.at(0), ElementsAre(Pair("batch", "16"), Pair("model", "a")));
  EXPECT_THAT(grid.at(1), ElementsAre(Pair("batch", "16"), Pair("model", "b")));
  EXPECT_THAT(grid.at(5), ElementsAre(Pair("batch", "32"), Pair("model", "c")));
  grid.set({"batch", {"64"}});  // replaced where it stands
  EXPECT_THAT(grid.at(2), ElementsAre(Pair("batch", "64"), Pair("model", "c")));
}

TEST(Grid, RefusesTooManyPoints) {
  Grid grid;
  grid.set({"a", axis_values("a", "1:2000:1", ValueForm::word)});
  grid.set({"b", axis_values("b", "1:2000:1", ValueForm::word)});
  try {
    static_cast<void>(grid.size());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("4000000 points (2000 a x 2000 b); at most 1000000"));
  }
}

}  // namespace
}  // namespace hcclsim::study
