#include "cli/junit.hpp"

#include <algorithm>
#include <array>
#include <pugixml.hpp>
#include <sstream>
#include <string_view>

namespace hcclsim::cli {
namespace {

using Outcome = JunitTest::Outcome;

/// Bytes of the character that begins here, if UTF-8 and XML 1.0 allow it; 0 otherwise.
std::size_t valid_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  char32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> least_code{0, 0, 0x80, 0x800, 0x10000};  // by length
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool none = code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF;
  return code < least_code.at(length) || surrogate || none ? 0 : length;
}

std::string xml_text(std::string_view text) {
  std::string valid;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = valid_character(text.substr(at));
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
