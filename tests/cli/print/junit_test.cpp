#include "cli/print/junit.hpp"

#include <gtest/gtest.h>

#include <pugixml.hpp>

namespace hcclsim::cli {
namespace {

using Outcome = JunitTest::Outcome;

TEST(Junit, CountsAndOutcomes) {
  const std::string text = junit_xml({"suite",
                                      {{"model", "tiny"}},
                                      {{"a"},
                                       {"b", Outcome::failed, "later", "end 3 -> 4\n"},
                                       {"c", Outcome::skipped, "none"},
                                       {"d", Outcome::error, "deadlock"}}});
  EXPECT_EQ(text, R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="suite" tests="4" failures="1" errors="1" skipped="1" time="0">
    <properties>
      <property name="model" value="tiny" />
    </properties>
    <testcase classname="suite" name="a" time="0" />
    <testcase classname="suite" name="b" time="0">
      <failure message="later">end 3 -&gt; 4
</failure>
    </testcase>
    <testcase classname="suite" name="c" time="0">
      <skipped message="none" />
    </testcase>
    <testcase classname="suite" name="d" time="0">
      <error message="deadlock" />
    </testcase>
  </testsuite>
</testsuites>
)");
}

TEST(Junit, HoldsAnyText) {
  const std::string name = "<&\"'> \t 10\xC3\x97 \xF0\x9F\x99\x82";
  const std::string broken = std::string("\x01\x1F\xFF\xC0\x80\xED\xA0\x80\xEF\xBF\xBF\xE2\x82 end") + '\0';
  const std::string text = junit_xml({name, {{"key", name}}, {{broken, Outcome::failed, broken, name}}});
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(text.c_str()));
  const pugi::xml_node suite = document.child("testsuites").child("testsuite");
  EXPECT_EQ(suite.attribute("name").value(), name);
  EXPECT_EQ(suite.child("properties").child("property").attribute("value").value(), name);
  EXPECT_EQ(suite.child("testcase").child("failure").text().get(), name);
  std::string replaced;
  // One for each byte that cannot stand: 2 controls, FF, C0, 80, then ED A0 80, EF BF BF, E2 82, and the zero.
  for (int i = 0; i < 13; ++i) replaced += "\xEF\xBF\xBD";
  EXPECT_EQ(suite.child("testcase").attribute("name").value(), replaced + " end\xEF\xBF\xBD");
}

}  // namespace
}  // namespace hcclsim::cli
