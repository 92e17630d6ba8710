#include "cli/draw/svg_chart.hpp"
#include "cli/draw/svg.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include <pugixml.hpp>

namespace hcclsim::cli {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pointwise;

std::string golden(const std::string& name) {
  const std::ifstream file(std::string(HCCLSIM_TEST_DATA) + "/../cli/draw/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(AxisTicks, RoundNumbersInsideTheRange) {
  EXPECT_THAT(axis_ticks(1, 10, 8), ElementsAre(2, 4, 6, 8, 10));
  EXPECT_THAT(axis_ticks(0, 100, 5), ElementsAre(0, 50, 100));
  EXPECT_THAT(axis_ticks(-1, 1, 4), ElementsAre(-1, 0, 1));
  EXPECT_THAT(axis_ticks(2.30, 2.31, 6), Pointwise(DoubleEq(), {2.300, 2.302, 2.304, 2.306, 2.308, 2.310}));
  EXPECT_THAT(axis_ticks(1, 4, 8), ElementsAre(1, 1.5, 2, 2.5, 3, 3.5, 4));
  EXPECT_THAT(axis_ticks(1, 4, 8, 1), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(axis_ticks(1, 1, 4), IsEmpty());
}

TEST(AxisTicks, NeverMoreThanAskedFor) {
  for (int most = 2; most < 12; ++most) {
    for (double high = 1.1; high < 1e6; high *= 1.37) {
      SCOPED_TRACE(fmt::format("at most {} ticks up to {}", most, high));
      const auto ticks = axis_ticks(1, high, most);
      EXPECT_LE(ticks.size(), static_cast<std::size_t>(most));
      for (const double tick : ticks) {
        EXPECT_GE(tick, 1 - 1e-6);
        EXPECT_LE(tick, high * (1 + 1e-6));
      }
    }
  }
}

TEST(SvgLineChart, Golden) {
  const LineChart chart{"Loss of <tiny> & others",
                        "iteration",
                        "loss",
                        {{"tiny", {{1, 2.5}, {2, 1.5}, {3, 1.25}, {4, 1}}}, {"other", {{1, 2}, {4, 2.25}}}},
                        true};
  EXPECT_EQ(svg_line_chart(chart), golden("line_chart.svg"));
}

TEST(SvgLineChart, IsWellFormed) {
  pugi::xml_document document;
  const std::string svg = svg_line_chart({"a & b", "<x>", "y", {{"s > t", {{0, 0}, {1, 1}}}}});
  EXPECT_TRUE(document.load_string(svg.c_str()));
  EXPECT_STREQ(document.child("svg").child("title").text().get(), "a & b");
}

TEST(SvgLineChart, BreaksWhereThereIsNoNumber) {
  const double nan = std::nan("");
  const std::string svg = svg_line_chart({"t", "x", "y", {{"s", {{0, 0}, {1, 1}, {2, nan}, {3, 1}, {4, 0}}}}});
  EXPECT_THAT(svg, HasSubstr("d=\"M80.0 390.0h0L255.0 55.0M605.0 55.0h0L780.0 390.0\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(SvgLineChart, MarksWhatIsNotFinite) {
  const double nan = std::nan("");
  LineChart chart{"t", "x", "y", {{"loss", {{1, 2}, {2, nan}, {3, nan}, {4, 5}, {5, HUGE_VAL}}}}, true};
  EXPECT_THAT(svg_line_chart(chart), Not(HasSubstr("not finite")));
  chart.marks_not_finite = true;
  const std::string svg = svg_line_chart(chart);
  // From 80 to 780 pixels: x = 2 and 3 are a bar, x = 5 is a dot at the right edge, where no line ends.
  EXPECT_THAT(svg, HasSubstr("d=\"M255.0 55h0H430.0M780.0 55h0\"><title>loss is not finite</title>"));
}

TEST(SvgLineChart, OnePointAndNone) {
  EXPECT_THAT(svg_line_chart({"t", "x", "y", {{"s", {{1, 2}}}}}), HasSubstr("d=\"M430.0 222.5h0\""));
  EXPECT_THAT(svg_line_chart({"t", "x", "y", {{"s", {}}}}), HasSubstr("d=\"\""));
}

TEST(LineChart, LogarithmicAxesShowPowersOfTenAndLeaveOutWhatHasNoLogarithm) {
  const LineChart chart{.title = "sizes",
                        .x_label = "x",
                        .y_label = "y",
                        .series = {{"one", {{1, 0}, {10, 1}, {1000, 100}}}},
                        .log_x = true,
                        .log_y = true};
  const std::string svg = svg_line_chart(chart);
  // From (10, 1) in the lower left corner to (1000, 100) in the upper right one.
  EXPECT_THAT(svg, HasSubstr("d=\"M80.0 390.0h0L780.0 55.0\""));
  for (const char* tick : {">10</text>", ">100</text>", ">1000</text>", ">1</text>"}) {
    EXPECT_THAT(svg, HasSubstr(tick));
  }
  EXPECT_THAT(svg, Not(HasSubstr(">500</text>")));
}

TEST(LineChart, SeveralStandBelowEachOther) {
  const LineChart chart{.title = "two", .x_label = "x", .y_label = "y", .series = {{"one", {{1, 2}, {2, 3}}}}};
  const std::string svg = svg_line_charts({chart, chart});
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(svg.c_str()));
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 800 900\""));
  EXPECT_THAT(svg, HasSubstr("<g transform=\"translate(0 450)\">"));
}

}  // namespace
}  // namespace hcclsim::cli
