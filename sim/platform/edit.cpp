#include "sim/platform/edit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <pugixml.hpp>
#include <sstream>
#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/units.hpp"
#include "sim/platform/catalog.hpp"
#include "sim/platform/check.hpp"
#include "sim/platform/names.hpp"
#include "sim/platform/values.hpp"

namespace hcclsim::sim {
namespace {

constexpr std::array<const char*, 5> edited_speeds{"nominal", "low", "high", "read", "write"};
constexpr std::string_view forms =
    "accepted: link[PATTERN].KEY, npu[PATTERN].KEY, host[PATTERN].npu, cluster[PATTERN].KEY and platform.KEY, such as "
    "link[hccs*].bandwidth";

/// A target taken apart.
struct Target {
  std::string element;  ///< link, npu, host, cluster or platform
  std::string pattern;  ///< of the element's id
  std::string key;
};

std::vector<std::string> keys_of(std::string_view element) {
  if (element == "cluster") return {"bandwidth", "latency"};
  if (element == "host") return {"npu"};
  if (element == "npu") {
    std::vector<std::string> keys;
    for (const NpuProperty& property : npu_properties()) keys.emplace_back(property.key);
    return keys;
  }
  if (element == "link") {
    std::vector<std::string> keys{"bandwidth", "latency"};
    keys.insert(keys.end(), edited_speeds.begin(), edited_speeds.end());
    return keys;
  }
  std::vector<std::string> keys;
  for (const TaskCost& cost : task_costs()) keys.emplace_back(cost.property);
  for (const std::string& time : time_properties()) {
    if (time.starts_with("op.")) keys.push_back(time);
  }
  keys.emplace_back("op.issue");
  for (const NpuProperty& property : npu_properties()) keys.push_back(fmt::format("npu.{}", property.key));
  for (const char* const kind : {"hccs", "pcie", "sio", "ub", "roce", "other"}) {
    for (const char* const speed : edited_speeds) keys.push_back(fmt::format("link.{}.{}", kind, speed));
  }
  return keys;
}

Target parse_target(std::string_view text) {
  Target target;
  if (text.starts_with("platform.")) {
    target = {"platform", "", std::string(text.substr(text.find('.') + 1))};
  } else {
    const std::size_t open = text.find('[');
    const std::size_t close = text.rfind("].");  // a pattern may hold brackets, too
    if (open == std::string_view::npos || close == std::string_view::npos || close <= open + 1) {
      bad_input("option", "'{}' is not the property of a platform; {}", text, forms);
    }
    target = {std::string(text.substr(0, open)), std::string(text.substr(open + 1, close - open - 1)),
              std::string(text.substr(close + 2))};
  }
  constexpr std::array<std::string_view, 5> elements{"link", "npu", "host", "cluster", "platform"};
  if (std::find(elements.begin(), elements.end(), target.element) == elements.end()) {
    bad_input("option", "'{}': '{}' is none of link, npu, host, cluster and platform; {}", text, target.element, forms);
  }
  const std::vector<std::string> keys = keys_of(target.element);
  if (std::find(keys.begin(), keys.end(), target.key) == keys.end()) {
    bad_input("option", "'{}': unknown key '{}'{}; keys of {}: {}", text, target.key, did_you_mean(target.key, keys),
              target.element, fmt::join(keys, ", "));
  }
  return target;
}

bool may_be_meant(const pugi::xml_node& element, const Target& target) {
  const std::string_view tag = element.name();
  if (target.element == "npu") return (tag == "host" || tag == "cluster") && property(element, "npu");
  if (target.element == "host" && tag == "cluster") return true;
  return tag == target.element;
}

/// All elements of a document that the target's kind can mean, in the order of the file.
void collect(const pugi::xml_node& parent, const Target& target, std::vector<pugi::xml_node>& found) {
  for (const pugi::xml_node& child : parent.children()) {
    if (may_be_meant(child, target)) found.push_back(child);
    collect(child, target, found);
  }
}

void set_attribute(pugi::xml_node element, const char* name, const std::string& value) {
  pugi::xml_attribute attribute = element.attribute(name);
  if (attribute.empty()) attribute = element.append_attribute(name);
  attribute.set_value(value.c_str());
}

void set_property(pugi::xml_node element, const std::string& key, const std::string& value) {
  pugi::xml_node prop = element.find_child_by_attribute("prop", "id", key.c_str());
  if (prop.empty()) {
    prop = element.prepend_child("prop");  // the document type wants properties before what a zone holds
    prop.append_attribute("id").set_value(key.c_str());
  }
  set_attribute(prop, "value", value);
}

/// A property of a link: its own, else that of its kind in the outermost zone; empty if neither is there.
std::string link_property(const pugi::xml_node& link, const pugi::xml_node& outermost, const char* key) {
  if (const pugi::xml_attribute own = property(link, key)) return own.value();
  return property(outermost, fmt::format("link.{}.{}", property(link, "kind").value(), key).c_str()).value();
}

/// What the user says of a link holds as it is: it has no range.
void fix_speed(pugi::xml_node link, const std::string& bandwidth) {
  for (const char* const end : {"low", "high"}) set_property(link, end, bandwidth);
}

/// The speeds of tasks keep their ratio to the bandwidth.
void set_link_bandwidth(pugi::xml_node link, const pugi::xml_node& outermost, const std::string& value) {
  if (const std::string fault = bandwidth_fault(value); !fault.empty()) bad_input("platform", "bandwidth: {}", fault);
  const double before = parse_bandwidth(link.attribute("bandwidth").value());
  const double factor = parse_bandwidth(value) / before;
  for (const char* const key : {"read", "write"}) {
    const std::string speed = link_property(link, outermost, key);
    if (!speed.empty()) set_property(link, key, fmt::format("{}Bps", parse_bandwidth(speed) * factor));
  }
  fix_speed(link, value);
  set_attribute(link, "bandwidth", value);
}

bool is_task_speed(std::string_view key) { return key == "read" || key == "write"; }

/// A property of the outermost zone. With what tasks reach over links of a kind the user says what these links are.
void set_zone_property(pugi::xml_node outermost, const std::string& key, const std::string& value) {
  set_property(outermost, key, value);
  const std::size_t last = key.rfind('.') + 1;
  if (!key.starts_with("link.") || !is_task_speed(std::string_view(key).substr(last))) return;
  for (const char* const end : {"low", "high"}) {
    outermost.remove_child(outermost.find_child_by_attribute("prop", "id", (key.substr(0, last) + end).c_str()));
  }
}

void apply(const Target& target, const std::string& value, pugi::xml_node element, const pugi::xml_node& outermost) {
  if (target.element == "cluster") {
    set_attribute(element, target.key == "bandwidth" ? "bw" : "lat", value);
  } else if (target.element == "link" && target.key == "bandwidth") {
    set_link_bandwidth(element, outermost, value);
  } else if (target.element == "link" && target.key == "latency") {
    set_attribute(element, "latency", value);
  } else {
    set_property(element, target.key, value);
    if (target.element == "link" && is_task_speed(target.key))
      fix_speed(element, element.attribute("bandwidth").value());
  }
}

/// Applies an edit wherever its pattern matches; throws if it matches nothing.
void apply(const PlatformEdit& edit, const std::string& path, const pugi::xml_node& outermost) {
  const Target target = parse_target(edit.target);
  if (target.element == "platform") {
    set_zone_property(outermost, target.key, edit.value);
    return;
  }
  std::vector<pugi::xml_node> elements;
  collect(outermost.parent(), target, elements);  // the outermost element may be meant itself
  bool matched = false;
  for (const pugi::xml_node& element : elements) {
    if (::fnmatch(target.pattern.c_str(), element.attribute("id").value(), 0) != 0) continue;
    apply(target, edit.value, element, outermost);
    matched = true;
  }
  if (matched) return;
  std::vector<std::string> ids;
  for (const pugi::xml_node& element : elements) ids.emplace_back(element.attribute("id").value());
  const std::string there = ids.empty() ? "it has none"
                            : ids.size() == 1
                                ? fmt::format("it has {}", ids.front())
                                : fmt::format("it has {} of them, from {} to {}", ids.size(), ids.front(), ids.back());
  bad_input("platform", "no {} of {} matches '{}'{}; {}", target.element, path, target.pattern,
            did_you_mean(target.pattern, ids), there);
}

/// The file's text after the edits.
std::string edited_text(const std::string& path, std::span<const PlatformEdit> edits) {
  pugi::xml_document document;
  constexpr unsigned parts = pugi::parse_default | pugi::parse_declaration | pugi::parse_doctype;
  if (!document.load_file(path.c_str(), parts)) internal_error("{} passed its check but cannot be read", path);
  const pugi::xml_node outermost = document.document_element().first_child();
  for (const PlatformEdit& edit : edits) {
    try {
      apply(edit, path, outermost);
    } catch (const Error& error) {
      throw Error(error.code(), error.kind(), fmt::format("--set {}={}: {}", edit.target, edit.value, error.what()));
    }
  }
  std::ostringstream text;
  document.save(text, " ");
  return text.str();
}

}  // namespace

PlatformEdit parse_platform_edit(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals + 1 == text.size()) {
    bad_input("option", "'{}' has no value; give TARGET=VALUE, such as link[hccs*].bandwidth=20GBps", text);
  }
  const std::string_view target = text.substr(0, equals);
  check_edit_target(target);
  return {std::string(target), std::string(text.substr(equals + 1))};
}

void check_edit_target(std::string_view target) { static_cast<void>(parse_target(target)); }

PlatformEdit npus_edit(const std::string& hosts, const std::string& soc) {
  return {.target = fmt::format("host[{}].npu", hosts), .value = soc};
}

bool make_npus(std::span<const PlatformEdit> edits) {
  return std::ranges::any_of(edits, [](const PlatformEdit& edit) { return edit.target.starts_with("host["); });
}

EditedPlatform::EditedPlatform(const std::string& path, std::span<const PlatformEdit> edits)
    : file_(edited_text(path, edits)) {
  for (const PlatformProblem& problem : check_platform(this->path())) {
    if (!problem.fatal) continue;
    std::vector<std::string> given;
    std::transform(edits.begin(), edits.end(), std::back_inserter(given),
                   [](const PlatformEdit& edit) { return fmt::format("--set {}={}", edit.target, edit.value); });
    bad_input("platform", "{} with {}: {}", path, fmt::join(given, " "), problem.message);
  }
}

}  // namespace hcclsim::sim
