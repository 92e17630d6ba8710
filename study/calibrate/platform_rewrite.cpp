#include "study/calibrate/platform_rewrite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <sstream>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using sim::LinkAdjustment;

std::string bandwidth_text(BytesPerSecond bandwidth) { return fmt::format("{:.12g}GBps", bandwidth / giga); }
std::string latency_text(Seconds latency) { return fmt::format("{:.12g}us", latency / microsecond); }

/// The value of a property that the element has itself, or an empty attribute.
pugi::xml_attribute property(pugi::xml_node element, const std::string& id) {
  return element.find_child_by_attribute("prop", "id", id.c_str()).attribute("value");
}

void scale(pugi::xml_attribute speed, double factor) {
  if (speed) speed.set_value(bandwidth_text(parse_bandwidth(speed.value()) * factor).c_str());
}

void delay(pugi::xml_attribute latency, Seconds added) {
  if (latency) latency.set_value(latency_text(parse_duration(latency.value()) + added).c_str());
}

/// "--" ends no comment of XML, so it is not written.
std::string without_dashes(std::string source) {
  for (std::size_t at = source.find("--"); at != std::string::npos; at = source.find("--")) source.replace(at, 2, "-");
  return source;
}

std::string comment_text(std::string_view kind, const LinkAdjustment& adjustment, const std::string& source) {
  return fmt::format(" calibrated: {} bandwidth x {:.6g}, latency {:+.6g} us; {} ", kind, adjustment.bandwidth,
                     adjustment.latency / microsecond, without_dashes(source));
}

class Rewriter {
 public:
  Rewriter(pugi::xml_node root, const PlatformChange& change, const std::string& source)
      : root_(root), source_(source), change_(change) {
    for (const auto& [kind, adjustment] : change.links) links_[std::string(name_of(kind))] = adjustment;
  }

  void rewrite() {
    if (change_.task.has_value()) set_time("op.task_us", *change_.task);
    for (const auto& [collective, base] : change_.base) {
      set_time(collective.empty() ? "op.base_us" : fmt::format("op.base.{}_us", collective), base);
    }
    for (const auto& [kind, adjustment] : links_) rewrite_defaults(kind, adjustment);
    visit(root_);
  }

 private:
  /// SimGrid wants properties before everything else.
  pugi::xml_node add_property(const std::string& id) {
    pugi::xml_node added = root_.prepend_child("prop");
    root_.prepend_child(pugi::node_pcdata).set_value("\n    ");
    added.append_attribute("id").set_value(id.c_str());
    added.append_attribute("value");
    return added;
  }

  /// A time of the outermost zone, with where it comes from.
  void set_time(const std::string& id, Seconds time) {
    pugi::xml_node element = root_.find_child_by_attribute("prop", "id", id.c_str());
    if (!element) element = add_property(id);
    element.attribute("value").set_value(fmt::format("{:.9g}", time / microsecond).c_str());
    comment(root_, element, fmt::format(" calibrated: {} ", without_dashes(source_)));
  }

  /// What the outermost zone says of all links of the kind.
  void rewrite_defaults(const std::string& kind, const LinkAdjustment& adjustment) {
    for (const char* const key : {"read", "write"}) {
      scale(property(root_, fmt::format("link.{}.{}", kind, key)), adjustment.bandwidth);
    }
    pugi::xml_attribute source = property(root_, fmt::format("link.{}.source", kind));
    if (!source) source = add_property(fmt::format("link.{}.source", kind)).attribute("value");
    source.set_value(fmt::format("calibrated: {}", source_).c_str());
  }

  void visit(pugi::xml_node zone) {
    std::vector<pugi::xml_node> children(zone.begin(), zone.end());
    for (pugi::xml_node child : children) {
      const bool link = std::strcmp(child.name(), "link") == 0;
      const bool cluster = std::strcmp(child.name(), "cluster") == 0;
      if (!link && !cluster) {
        visit(child);
        continue;
      }
      const pugi::xml_attribute usual = property(root_, "fabric.kind");
      const pugi::xml_attribute own = property(child, "kind");
      const std::string kind = link && own ? own.value() : usual.as_string("other");
      const auto adjustment = links_.find(kind);
      if (adjustment == links_.end()) continue;
      comment(zone, child, comment_text(kind, adjustment->second, source_));
      for (const char* const name : {"bandwidth", "bw", "bb_bw"}) {
        scale(child.attribute(name), adjustment->second.bandwidth);
      }
      for (const char* const name : {"latency", "lat", "bb_lat"}) {
        delay(child.attribute(name), adjustment->second.latency);
      }
      for (const char* const name : {"read", "write"}) scale(property(child, name), adjustment->second.bandwidth);
      widen(child, kind, parse_bandwidth(child.attribute(link ? "bandwidth" : "bw").value()));
    }
  }

  /// Puts a comment on a line of its own before the element, which is indented like it.
  static void comment(pugi::xml_node zone, pugi::xml_node element, const std::string& text) {
    const std::string indent = element.previous_sibling().value();
    zone.insert_child_before(pugi::node_comment, element).set_value(text.c_str());
    zone.insert_child_before(pugi::node_pcdata, element).set_value(indent.c_str());
  }

  /// Makes the range of the link, or that of its kind, hold the bandwidth.
  void widen(pugi::xml_node link, const std::string& kind, BytesPerSecond bandwidth) {
    const auto extend = [&](const char* key, auto is_within) {
      pugi::xml_attribute value = property(link, key);
      if (!value) value = property(root_, fmt::format("link.{}.{}", kind, key));
      if (value && !is_within(parse_bandwidth(value.value()))) value.set_value(bandwidth_text(bandwidth).c_str());
    };
    extend("low", [&](BytesPerSecond low) { return low <= bandwidth; });
    extend("high", [&](BytesPerSecond high) { return high >= bandwidth; });
  }

  pugi::xml_node root_;
  const std::string& source_;
  const PlatformChange& change_;
  std::map<std::string, LinkAdjustment> links_;
};

}  // namespace

std::string rewritten_platform(const std::string& path, const PlatformChange& change, const std::string& source) {
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_file(path.c_str(), pugi::parse_full | pugi::parse_ws_pcdata);
  if (!result) internal_error("{}: {} although the platform passed its check", path, result.description());
  const pugi::xml_node zone =
      document.child("platform").find_child([](pugi::xml_node child) { return child.type() == pugi::node_element; });
  Rewriter(zone, change, source).rewrite();
  std::ostringstream text;
  for (const pugi::xml_node part : document) {
    part.print(text, "", pugi::format_raw);
    text << '\n';
  }
  return text.str();
}

}  // namespace hcclsim::study
