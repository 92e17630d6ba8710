#include "cli/print/junit.hpp"

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>
#include <string_view>

#include "base/text.hpp"

namespace hcclsim::cli {
namespace {

using Outcome = JunitTest::Outcome;

std::string xml_text(std::string_view text) {
  std::string valid;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_bytes(text.substr(at));
    valid += length == 0 ? "\xEF\xBF\xBD" : text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return valid;
}

void set(pugi::xml_node& node, const char* attribute, std::string_view value) {
  node.append_attribute(attribute).set_value(xml_text(value).c_str());
}

void add_test(pugi::xml_node& suite, const std::string& class_name, const JunitTest& test) {
  pugi::xml_node node = suite.append_child("testcase");
  set(node, "classname", class_name);
  set(node, "name", test.name);
  set(node, "time", "0");
  if (test.outcome == Outcome::passed) return;
  pugi::xml_node result = node.append_child(test.outcome == Outcome::skipped  ? "skipped"
                                            : test.outcome == Outcome::failed ? "failure"
                                                                              : "error");
  set(result, "message", test.message);
  if (!test.details.empty()) result.text().set(xml_text(test.details).c_str());
}

}  // namespace

std::string junit_xml(const JunitSuite& suite) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  set(declaration, "version", "1.0");
  set(declaration, "encoding", "UTF-8");
  pugi::xml_node suites = document.append_child("testsuites");
  pugi::xml_node node = suites.append_child("testsuite");
  set(node, "name", suite.name);
  const auto count = [&](Outcome outcome) {
    return std::to_string(std::count_if(suite.tests.begin(), suite.tests.end(),
                                        [outcome](const JunitTest& test) { return test.outcome == outcome; }));
  };
  set(node, "tests", std::to_string(suite.tests.size()));
  set(node, "failures", count(Outcome::failed));
  set(node, "errors", count(Outcome::error));
  set(node, "skipped", count(Outcome::skipped));
  set(node, "time", "0");
  if (!suite.properties.empty()) {
    pugi::xml_node properties = node.append_child("properties");
    for (const auto& [name, value] : suite.properties) {
      pugi::xml_node property = properties.append_child("property");
      set(property, "name", name);
      set(property, "value", value);
    }
  }
  for (const JunitTest& test : suite.tests) add_test(node, suite.name, test);
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

}  // namespace hcclsim::cli
