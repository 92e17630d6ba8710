// JSON of users: values, and errors with their place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim {
namespace {

std::string refusal(const std::string& text) {
  return test::refusal("kind", [&] { static_cast<void>(parse_json_text(text, "f.json", "kind")); });
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(JsonText, Values) {
  EXPECT_EQ(parse_json_text(R"({"b": [1, null], "a": 2.5})", "f.json", "kind"),
            (Json{{"a", 2.5}, {"b", {1, nullptr}}}));
  const auto ordered = parse_json_text<Json>(R"({"b": 1, "a": 2})", "f.json", "kind");
  EXPECT_EQ(ordered.dump(), R"({"b":1,"a":2})");
}

TEST(JsonText, SeesKeys) {
  std::vector<std::string> keys;
  const Json value = parse_json_text(R"({"a": {"b": 1}})", "f.json", "kind",
                                     [&](int /*depth*/, Json::parse_event_t event, const Json& parsed) {
                                       if (event == Json::parse_event_t::key) keys.push_back(parsed);
                                       return false;
                                     });
  EXPECT_THAT(keys, testing::ElementsAre("a", "b"));
  EXPECT_EQ(value["a"]["b"], 1);
}

TEST(JsonText, BadText) {
  EXPECT_THAT(refusal(""), testing::StartsWith("f.json:1:1: not JSON: syntax error"));
  EXPECT_THAT(refusal("{\n  \"a\": ,"), testing::StartsWith("f.json:2:8: not JSON: syntax error"));
  EXPECT_EQ(refusal("[1e999]"), "f.json: number overflow parsing '1e999'");
}

TEST(JsonText, Depth) {
  EXPECT_EQ(parse_json_text(repeated("[", 100) + "1" + repeated("]", 100), "f.json", "kind").size(), 1U);
  EXPECT_EQ(refusal(repeated("[", 101) + repeated("]", 101)), "f.json: objects and lists are more than 100 deep");
  EXPECT_EQ(refusal(repeated(R"({"a":)", 200000)), "f.json: objects and lists are more than 100 deep");
}

}  // namespace
}  // namespace hcclsim
