// JSON: values and their text; that of users, and errors with their place.

#include "base/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim {
namespace {

using testing::ElementsAre;

Json parsed(const std::string& text) { return parse_json_text(text, "f.json", "kind"); }

std::string refusal(const std::string& text) {
  return test::refusal("kind", [&] { static_cast<void>(parsed(text)); });
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Json, BracedListsAreObjectsOrLists) {
  EXPECT_EQ((Json{{"a", 1}, {"b", {1, "x", nullptr}}}).dump(), R"({"a":1,"b":[1,"x",null]})");
  EXPECT_EQ((Json{{"a", {{"b", true}}}}).dump(), R"({"a":{"b":true}})");
  EXPECT_EQ((Json{{1, 2}, {3, 4}}).dump(), "[[1,2],[3,4]]");
  EXPECT_EQ(Json::array({{"a", 1}}).dump(), R"([["a",1]])");
  EXPECT_EQ(Json::array().dump(), "[]");
  EXPECT_EQ(Json::object().dump(), "{}");
}

TEST(Json, Containers) {
  EXPECT_EQ(Json(std::vector<double>{1, 0.5}).dump(), "[1.0,0.5]");
  EXPECT_EQ(Json(std::array<std::string, 2>{"a", "b"}).dump(), R"(["a","b"])");
  EXPECT_EQ(Json(std::map<std::string, int>{{"b", 1}, {"a", 2}}).dump(), R"({"a":2,"b":1})");
  EXPECT_EQ(Json(std::vector<std::pair<std::string, double>>{{"t", 2}}).dump(), R"([["t",2.0]])");
  EXPECT_EQ(Json(std::vector<bool>{true, false}).dump(), "[true,false]");
}

TEST(Json, TextOfNumbersAndStrings) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ((Json{1.0, 0.1, 1e-7, 1e20, 1.5e300, -0.0}).dump(), "[1.0,0.1,1e-07,1e+20,1.5e+300,-0.0]");
  EXPECT_EQ((Json{UINT64_MAX, INT64_MIN, 0U}).dump(), "[18446744073709551615,-9223372036854775808,0]");
  EXPECT_EQ((Json{infinite, -infinite, std::numeric_limits<double>::quiet_NaN()}).dump(), "[null,null,null]");
  EXPECT_EQ(Json("a\"b\\c\n\t\x01\x7f").dump(), "\"a\\\"b\\\\c\\n\\t\\u0001\x7f\"");
  EXPECT_EQ(Json("caf\xc3\xa9 caf\xe9").dump(), "\"caf\xc3\xa9 caf\xef\xbf\xbd\"");
  EXPECT_EQ(ascii_json("caf\xc3\xa9\n"), "\"caf\\u00e9\\n\"");
}

TEST(Json, Indented) {
  EXPECT_EQ((Json{{"a", {1, 2}}, {"b", Json::array()}, {"c", Json::object()}}).dump(2),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": [],\n  \"c\": {}\n}");
}

TEST(Json, ObjectsKeepTheOrderOfTheirKeys) {
  Json json;
  json["b"] = 1;
  json["a"]["x"] = 2;
  json["b"] = 3;
  EXPECT_EQ(json.dump(), R"({"b":3,"a":{"x":2}})");
  json.update({{"a", 1}, {"c", 2}});
  EXPECT_EQ(json.dump(), R"({"b":3,"a":1,"c":2})");
  json["list"] = Json::array({{{"z", 1}, {"y", 2}}});
  json.sort_keys();
  EXPECT_EQ(json.dump(), R"({"a":1,"b":3,"c":2,"list":[{"y":2,"z":1}]})");
  EXPECT_FALSE(json.contains("d"));
  EXPECT_EQ(json.value("d", 7), 7);
  EXPECT_EQ(json.value("b", 7), 3);
}

TEST(Json, Lists) {
  Json json;
  json.push_back(1);
  json.push_back({2, 3});
  json.back().push_back(4);
  json[0] = "x";
  EXPECT_EQ(json.dump(), R"(["x",[2,3,4]])");
  EXPECT_THAT(json[1].get<std::vector<int>>(), ElementsAre(2, 3, 4));
  EXPECT_EQ(json.front().text(), "x");
  EXPECT_EQ(Json().size(), 0U);
  EXPECT_EQ(Json(5).size(), 1U);
}

TEST(Json, NumbersAreEqualByValue) {
  EXPECT_EQ(Json(1), Json(1U));
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_NE(Json(-1), Json(UINT64_MAX));
  EXPECT_NE(Json(1), Json(true));
  EXPECT_NE(Json(1), Json("1"));
  EXPECT_NE((Json{{"a", 1}, {"b", 2}}), (Json{{"b", 2}, {"a", 1}}));
}

TEST(Json, WrongTypesAreInternalErrors) {
  const Json json{{"a", "x"}, {"n", nullptr}};
  const auto fault = [](auto action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::internal);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(fault([&] { static_cast<void>(json["a"].get<int>()); }), R"(JSON: "x" is no number)");
  EXPECT_EQ(fault([&] { static_cast<void>(json["a"].get<bool>()); }), R"(JSON: "x" is neither true nor false)");
  EXPECT_EQ(fault([&] { static_cast<void>(json["n"].get<std::string>()); }), "JSON: null is no string");
  EXPECT_EQ(fault([&] { static_cast<void>(json.at("c")); }), R"(JSON: {"a":"x","n":null} has no key c)");
  EXPECT_EQ(fault([&] { static_cast<void>(Json{1, 2}[2]); }), "JSON: a list of 2 has no element 2");
  EXPECT_EQ(fault([&] { static_cast<void>(Json::parse("[1,")); }), "not JSON: [1,");
  EXPECT_EQ(Json::try_parse("[1,"), std::nullopt);
}

TEST(JsonText, Values) {
  const Json json = parsed(R"({"b": [1, null, -2, "é", true], "a": 2.5})");
  EXPECT_EQ(json, (Json{{"b", {1, nullptr, -2, "\xc3\xa9", true}}, {"a", 2.5}}));
  EXPECT_TRUE(json["b"][0].is_number_unsigned());
  EXPECT_FALSE(json["b"][2].is_number_unsigned());
  EXPECT_TRUE(json["b"][2].is_number_integer());
  EXPECT_TRUE(json["a"].is_number_float());
  EXPECT_EQ(parsed(" 7 ").get<int>(), 7);
}

TEST(JsonText, RepeatedKeys) {
  std::vector<std::string> keys;
  const Json json = parse_json_text(R"({"s": [{"id": 1}, {"id": 2, "id": 3, "x": {"y": 0, "y": 1}}], "s": 4})",
                                    "f.json", "kind", &keys);
  EXPECT_THAT(keys, ElementsAre("s[1].id", "s[1].x.y", "s"));
  EXPECT_EQ(json.dump(), R"({"s":4})");
  EXPECT_EQ(refusal("{\"s\": [{\"id\": 1},\n {\"id\": 2, \"id\": 3}], \"s\": 4}"),
            "f.json:2:15: the key s[1].id is given twice in one object; give it once");
  EXPECT_EQ(refusal(R"({"\u0061": 1, "a": 2})"), "f.json:1:17: the key a is given twice in one object; give it once");
}

TEST(JsonText, ObjectsOfManyKeys) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += (i == 0 ? "{\"" : ",\"") + std::to_string(i) + "\":" + std::to_string(i);
  const Json json = parsed(text + "}");
  ASSERT_EQ(json.size(), 200'000U);
  EXPECT_EQ(json.items().back().key, "199999");
  EXPECT_EQ(json.items().back().value, 199'999);
}

TEST(JsonText, BadText) {
  EXPECT_THAT(refusal(""), testing::StartsWith("f.json:1:1: not JSON: syntax error"));
  EXPECT_THAT(refusal("{\n  \"a\": ,"), testing::StartsWith("f.json:2:8: not JSON: syntax error"));
  EXPECT_THAT(refusal("\"caf\xe9\""), testing::StartsWith("f.json:1:6: not JSON: syntax error"));
  EXPECT_THAT(refusal("1 2"), testing::StartsWith("f.json:1:3: not JSON: syntax error"));
  EXPECT_EQ(refusal("[1e999]"), "f.json: number overflow parsing '1e999'");
}

TEST(JsonText, Depth) {
  EXPECT_EQ(parsed(repeated("[", 100) + "1" + repeated("]", 100)).size(), 1U);
  EXPECT_EQ(refusal(repeated("[", 101) + repeated("]", 101)), "f.json:1:101: objects and lists are more than 100 deep");
  EXPECT_EQ(refusal("\n" + repeated(R"({"a":)", 200'000)), "f.json:2:501: objects and lists are more than 100 deep");
  EXPECT_EQ(Json::try_parse(repeated("[", 200'000) + repeated("]", 200'000)), std::nullopt);
}

}  // namespace
}  // namespace hcclsim
