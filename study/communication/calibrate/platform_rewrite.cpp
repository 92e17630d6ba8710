#include "study/communication/calibrate/platform_rewrite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <pugixml.hpp>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

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

using Target = FitChoice::Target;

/// Where the value of a parameter comes from, and what it also stands for.
std::string origin_of(const CalibratedParameter& parameter) {
  std::string text = fmt::format("{}", fmt::join(parameter.sources, ", "));
  if (!parameter.stands_for.empty()) {
    text += fmt::format("; with {}, which they do not tell apart", fmt::join(parameter.stands_for, ", "));
  }
  return without_dashes(text);
}

/// What is changed of the links of a kind.
struct LinkChange {
  double factor = 1;  ///< on speeds
  double spread = 0;  ///< of the range around the new bandwidth, relative; 0: the bandwidth was not fitted
  Seconds added = 0;  ///< to latencies
  std::string speed_source{};
  std::string comment{};
};

/// Two standard errors.
double spread_of(const CalibratedParameter& parameter) {
  constexpr double least = 1e-3;
  return std::max(least, 2 * parameter.error / parameter.after);
}

std::map<std::string, LinkChange> link_changes(const std::vector<CalibratedParameter>& parameters) {
  std::map<std::string, LinkChange> changes;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> parts;  // what was done, and its origin
  for (const CalibratedParameter& parameter : parameters) {
    const Target target = parameter.choice.target;
    if (!parameter.is_fitted() || (target != Target::bandwidth && target != Target::latency)) continue;
    const std::string kind(name_of(parameter.choice.kind));
    LinkChange& change = changes[kind];
    if (target == Target::bandwidth) {
      change.factor = parameter.after / parameter.before;
      change.spread = spread_of(parameter);
      change.speed_source = fmt::format("calibrated: {}", fmt::join(parameter.sources, ", "));
      parts[kind].emplace_back(fmt::format("{} bandwidth x {:.6g}", kind, change.factor), origin_of(parameter));
    } else {
      change.added = parameter.after - parameter.before;
      parts[kind].emplace_back(
          fmt::format("{}latency {:+.6g} us", parts[kind].empty() ? kind + " " : "", change.added / microsecond),
          origin_of(parameter));
    }
  }
  for (auto& [kind, change] : changes) {
    const auto& done = parts[kind];
    const bool together = done.front().second == done.back().second;
    std::string text;
    for (std::size_t i = 0; i < done.size(); ++i) {
      text += (i == 0 ? "" : together ? ", " : "; ") + done[i].first;
      if (!together || i + 1 == done.size()) text += "; " + done[i].second;
    }
    change.comment = fmt::format(" calibrated: {} ", text);
  }
  return changes;
}

class Rewriter {
 public:
  Rewriter(pugi::xml_node root, const std::vector<CalibratedParameter>& parameters)
      : root_(root), parameters_(parameters), links_(link_changes(parameters)) {}

  void rewrite() {
    for (const CalibratedParameter& parameter : parameters_) {
      const FitChoice& choice = parameter.choice;
      if (!parameter.is_fitted()) continue;
      if (choice.target == Target::task) set_time("op.task_us", parameter);
      if (choice.target != Target::base) continue;
      set_time(choice.collective.empty() ? "op.base_us" : fmt::format("op.base.{}_us", choice.collective), parameter);
    }
    for (const auto& [kind, change] : links_) rewrite_defaults(kind, change);
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
  void set_time(const std::string& id, const CalibratedParameter& parameter) {
    pugi::xml_node element = root_.find_child_by_attribute("prop", "id", id.c_str());
    if (!element) element = add_property(id);
    element.attribute("value").set_value(fmt::format("{:.9g}", parameter.after / microsecond).c_str());
    comment(root_, element, fmt::format(" calibrated: {} ", origin_of(parameter)));
  }

  /// What the outermost zone says of all links of the kind.
  void rewrite_defaults(const std::string& kind, const LinkChange& change) {
    if (change.spread == 0) return;
    for (const char* const key : {"read", "write"}) {
      scale(property(root_, fmt::format("link.{}.{}", kind, key)), change.factor);
    }
    pugi::xml_attribute source = property(root_, fmt::format("link.{}.source", kind));
    if (!source) source = add_property(fmt::format("link.{}.source", kind)).attribute("value");
    source.set_value(change.speed_source.c_str());
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
      const auto found = links_.find(kind);
      if (found == links_.end()) continue;
      const LinkChange& change = found->second;
      comment(zone, child, change.comment);
      for (const char* const name : {"latency", "lat", "bb_lat"}) delay(child.attribute(name), change.added);
      if (change.spread == 0) continue;
      for (const char* const name : {"bandwidth", "bw", "bb_bw"}) scale(child.attribute(name), change.factor);
      for (const char* const name : {"read", "write"}) scale(property(child, name), change.factor);
      set_range(child, kind, parse_bandwidth(child.attribute(link ? "bandwidth" : "bw").value()), change.spread);
    }
  }

  /// Puts a comment on a line of its own before the element, which is indented like it; one of an earlier calibration
  /// goes.
  static void comment(pugi::xml_node zone, pugi::xml_node element, const std::string& text) {
    const std::string indent = element.previous_sibling().value();
    const pugi::xml_node before = element.previous_sibling().previous_sibling();
    if (before.type() == pugi::node_comment && std::string_view(before.value()).starts_with(" calibrated: ")) {
      zone.remove_child(element.previous_sibling());
      zone.remove_child(before);
    }
    zone.insert_child_before(pugi::node_comment, element).set_value(text.c_str());
    zone.insert_child_before(pugi::node_pcdata, element).set_value(indent.c_str());
  }

  /// The range of a link is its own, or that of all links of its kind, which holds those of all of them.
  void set_range(pugi::xml_node link, const std::string& kind, BytesPerSecond bandwidth, double spread) {
    const BytesPerSecond low = bandwidth * (1 - std::min(spread, 0.99));
    const BytesPerSecond high = bandwidth * (1 + spread);
    if (pugi::xml_attribute own = property(link, "low")) own.set_value(bandwidth_text(low).c_str());
    if (pugi::xml_attribute own = property(link, "high")) own.set_value(bandwidth_text(high).c_str());
    auto& range = ranges_.try_emplace(kind, low, high).first->second;
    range = {std::min(range.first, low), std::max(range.second, high)};
    pugi::xml_attribute of_all = property(root_, fmt::format("link.{}.low", kind));
    if (of_all) of_all.set_value(bandwidth_text(range.first).c_str());
    of_all = property(root_, fmt::format("link.{}.high", kind));
    if (of_all) of_all.set_value(bandwidth_text(range.second).c_str());
  }

  pugi::xml_node root_;
  const std::vector<CalibratedParameter>& parameters_;
  std::map<std::string, LinkChange> links_;
  std::map<std::string, std::pair<BytesPerSecond, BytesPerSecond>> ranges_{};  // by kind
};

}  // namespace

std::string rewritten_platform(const std::string& path, const std::vector<CalibratedParameter>& parameters) {
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_file(path.c_str(), pugi::parse_full | pugi::parse_ws_pcdata);
  if (!result) internal_error("{}: {} although the platform passed its check", path, result.description());
  const pugi::xml_node zone =
      document.child("platform").find_child([](pugi::xml_node child) { return child.type() == pugi::node_element; });
  Rewriter(zone, parameters).rewrite();
  std::ostringstream text;
  for (const pugi::xml_node part : document) {
    part.print(text, "", pugi::format_raw);
    text << '\n';
  }
  return text.str();
}

}  // namespace hcclsim::study
