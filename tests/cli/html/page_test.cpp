#include "cli/html/page.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/json.hpp"

namespace hcclsim::cli {
namespace {

/// The inside of the element with the data.
std::string data_of(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const std::size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Page, HoldsItsDataAndAllThatItNeeds) {
  const std::string page = html_page({{"title", "A step"}, {"figure", 1.5}});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_NE(page.find("<title>A step</title>"), std::string::npos);
  EXPECT_EQ(Json::parse(data_of(page)), (Json{{"title", "A step"}, {"figure", 1.5}}));
  EXPECT_NE(page.find("Chart.js v3"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find("{{"), page.rfind("{{title"));  // no mark is left: both are npos
  EXPECT_EQ(page.find("src="), std::string::npos);
}

TEST(Page, TextCannotBreakOutOfTheData) {
  const std::string evil = "</script><script>alert(1)</script><!-- & {{script}} \" \\ \n \xE2\x80\xA8";
  const Json data{{"title", evil}, {"name", evil}};
  const std::string page = html_page(data);
  EXPECT_EQ(count(page, "<script"), 3U);
  EXPECT_EQ(count(page, "</script"), 3U);
  EXPECT_EQ(Json::parse(data_of(page)), data);
  EXPECT_NE(page.find("<title>&lt;/script>&lt;script>alert(1)"), std::string::npos);
}

TEST(Page, TextNeedNotBeUtf8) {
  const std::string page = html_page({{"title", "caf\xE9"}});
  EXPECT_NE(page.find("<title>caf\xEF\xBF\xBD</title>"), std::string::npos);
  EXPECT_EQ(Json::parse(data_of(page))["title"], "caf\xEF\xBF\xBD");
}

TEST(Page, ItsTitleIsTheUsersIfThereIsOne) {
  EXPECT_EQ(page_head("run", "ResNet50", {.path = "r.html", .title = "", .command = "hcclsim"})["title"], "ResNet50");
  const Json head = page_head("run", "ResNet50", {.path = "r.html", .title = "Mine", .command = "hcclsim"});
  EXPECT_EQ(head["title"], "Mine");
  EXPECT_EQ(head["kind"], "run");
  EXPECT_EQ(head["command"], "hcclsim");
}

}  // namespace
}  // namespace hcclsim::cli
