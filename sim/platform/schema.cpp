#include "sim/platform/passes.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/files/nesting.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "sim/platform/values.hpp"

namespace hcclsim::sim {
namespace {

enum class Type : std::uint8_t { text, bandwidth, latency, optional_bandwidth, speeds, count, number, profile, choice };

/// The type of attributes, whatever the tag they stand in.
struct AttributeRule {
  std::string_view names;  ///< separated by blanks
  Type type = Type::text;
  std::string_view choices = {};  ///< likewise
};

constexpr std::array<AttributeRule, 14> attribute_rules{{
    {"id value src dst", Type::text},
    {"bandwidth bw bw_in bw_out read_bw write_bw", Type::bandwidth},
    {"bb_bw limiter_link loopback_bw", Type::optional_bandwidth},
    {"latency lat bb_lat loopback_lat", Type::latency},
    {"speed", Type::speeds},
    {"core", Type::count},
    {"version", Type::number},
    {"speed_file state_file availability_file bandwidth_file latency_file", Type::profile},
    // What SimGrid's routing attribute accepts and hcclsim has a use for.
    {"routing", Type::choice, "Full Floyd Dijkstra DijkstraCache Cluster Vivaldi None"},
    {"sharing_policy", Type::choice, "SHARED SPLITDUPLEX FULLDUPLEX FATPIPE"},
    {"bb_sharing_policy", Type::choice, "SHARED FATPIPE"},
    {"topology", Type::choice, "FLAT TORUS FAT_TREE DRAGONFLY"},
    {"symmetrical", Type::choice, "YES NO yes no"},
    {"direction", Type::choice, "UP DOWN NONE"},
}};

/// All lists are separated by blanks.
struct TagRule {
  std::string_view name;
  std::string_view children;
  std::string_view needed;         ///< attributes
  std::string_view optional = {};  ///< further ones
  std::string_view refusal = {};   ///< why the tag cannot be used
};

constexpr std::string_view zone_children =
    "prop zone AS cluster cabinet peer host router link backbone host_link route bypassRoute zoneRoute ASroute "
    "bypassZoneRoute bypassASroute";
constexpr std::string_view no_actors = "a platform file describes hardware; hcclsim starts no actors";
constexpr std::string_view dropped = "SimGrid 3.32 no longer has it";
/// Both networks know what changes, and when, from faults alone; a profile of SimGrid would go on for ever, too.
constexpr std::string_view no_profiles =
    "hcclsim takes no profiles; remove it, and say with --fault what changes on which date (docs/faults.md)";

constexpr TagRule refused(std::string_view name, std::string_view why) { return {name, "", "", "", why}; }

constexpr std::array tags{
    TagRule{"platform", "zone AS cluster cabinet peer", "version"},
    TagRule{"zone", zone_children, "id routing"},
    TagRule{"AS", zone_children, "id routing"},
    TagRule{"prop", "", "id value"},
    TagRule{"host", "prop disk", "id speed", "core speed_file state_file availability_file coordinates pstate"},
    TagRule{"disk", "prop", "read_bw write_bw", "id"},
    TagRule{"link", "prop", "id bandwidth latency", "bandwidth_file latency_file state_file sharing_policy"},
    TagRule{"backbone", "", "id bandwidth latency"},
    TagRule{"router", "", "id", "coordinates"},
    TagRule{"host_link", "", "id up down"},
    TagRule{"cluster", "prop", "id prefix suffix radical speed bw lat",
            "core sharing_policy topology topo_parameters bb_bw bb_lat bb_sharing_policy router_id limiter_link "
            "loopback_bw loopback_lat"},
    TagRule{"cabinet", "", "id prefix suffix radical speed bw lat"},
    TagRule{"peer", "", "id speed bw_in bw_out", "lat coordinates speed_file availability_file state_file"},
    TagRule{"route", "link_ctn", "src dst", "symmetrical"},
    TagRule{"bypassRoute", "link_ctn", "src dst"},
    TagRule{"zoneRoute", "link_ctn", "src dst gw_src gw_dst", "symmetrical"},
    TagRule{"ASroute", "link_ctn", "src dst gw_src gw_dst", "symmetrical"},
    TagRule{"bypassZoneRoute", "link_ctn", "src dst gw_src gw_dst"},
    TagRule{"bypassASroute", "link_ctn", "src dst gw_src gw_dst"},
    TagRule{"link_ctn", "", "id", "direction"},
    refused("trace_connect", no_profiles),
    refused("trace", no_profiles),
    refused("config", "hcclsim sets SimGrid's options itself, as its results depend on them; remove it"),
    refused("process", no_actors),
    refused("actor", no_actors),
    refused("include", dropped),
    refused("storage", dropped),
    refused("storage_type", dropped),
    refused("mount", dropped),
    refused("random", dropped),
};

const TagRule* find_tag(std::string_view name) {
  const auto* const found = std::ranges::find(tags, name, &TagRule::name);
  return found == tags.end() ? nullptr : found;
}

bool contains_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); !word.empty() && at != std::string_view::npos;
       at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

/// Where a text begins, after the white space before it.
std::ptrdiff_t text_place(const pugi::xml_node& text) {
  const std::size_t blanks = std::string_view(text.value()).find_first_not_of(" \t\r\n");
  return place(text) + static_cast<std::ptrdiff_t>(blanks == std::string_view::npos ? 0 : blanks);
}

class SchemaCheck {
 public:
  explicit SchemaCheck(PlatformProblems& problems) : problems_(problems) {}

  /// `depth`: elements around it.
  void check_element(const pugi::xml_node& element, const TagRule& rule, std::size_t depth = 0) {
    check_attributes(element, rule);
    if (rule.name == "host") check_power_state(element);
    for (const pugi::xml_node& child : element.children()) {
      const std::string_view name = child.name();
      if (child.type() != pugi::node_element) {
        problems_.fatal(text_place(child), "text inside <{}>: SimGrid reads tags and attributes only", rule.name);
        continue;
      }
      const TagRule* const child_rule = find_tag(name);
      if (child_rule == nullptr) {
        problems_.fatal(place(child), "unknown tag <{}>{}", name, did_you_mean(name, tag_names()));
      } else if (!child_rule->refusal.empty()) {
        problems_.fatal(place(child), "<{}> cannot be used: {}", name, child_rule->refusal);
      } else if (!contains_word(rule.children, name)) {
        problems_.fatal(place(child), "<{}> cannot stand inside <{}>{}{}", name, rule.name,
                        rule.children.empty() ? "" : "; it may hold ", rule.children);
      } else if (depth == deepest_nesting) {
        problems_.fatal(place(child), "elements are more than {} deep", deepest_nesting);
      } else {
        check_element(child, *child_rule, depth + 1);
      }
    }
    if (rule.name == "zone" || rule.name == "AS") check_zone_order(element);
  }

 private:
  void check_attributes(const pugi::xml_node& element, const TagRule& rule) {
    seen_.clear();
    const auto is_seen = [&](std::string_view name) { return std::ranges::count(seen_, name) > 0; };
    for (const pugi::xml_attribute& attribute : element.attributes()) {
      const std::string_view name = attribute.name();
      const bool needed = contains_word(rule.needed, name);
      if (!needed && !contains_word(rule.optional, name)) {
        std::vector<std::string> names;
        for (const std::string_view list : {rule.needed, rule.optional}) {
          for (const std::string_view each : split(list, ' ')) names.emplace_back(each);
        }
        problems_.fatal(place(element), "<{}> has no attribute '{}'{}", rule.name, name, did_you_mean(name, names));
        continue;
      }
      if (is_seen(name)) problems_.fatal(place(element), "<{}> has attribute '{}' twice", rule.name, name);
      seen_.push_back(name);
      check_value(element, name, attribute.value(), needed);
    }
    for (const std::string_view name : split(rule.needed, ' ')) {
      if (!is_seen(name)) problems_.fatal(place(element), "<{}> lacks the attribute '{}'", rule.name, name);
    }
  }

  static std::vector<std::string> tag_names() {
    std::vector<std::string> names;
    for (const TagRule& tag : tags) names.emplace_back(tag.name);
    return names;
  }

  void check_power_state(const pugi::xml_node& host) {
    const std::string_view state = host.attribute("pstate").as_string("0");
    const std::size_t speeds = split(host.attribute("speed").value(), ',').size();
    const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(state);
    if (number && *number < speeds) return;
    problems_.fatal(place(host), "host {}: pstate '{}' must be the number of one of its {} speeds, from 0",
                    host.attribute("id").value(), state, speeds);
  }

  void check_value(const pugi::xml_node& element, std::string_view name, std::string_view value, bool needed) {
    const std::string fault = needed && name == "id" && value.empty() ? "is empty" : value_fault(name, value);
    if (fault.empty()) return;
    const std::string_view id = element.attribute("id").value();
    problems_.fatal(place(element), "{}{}{}: {} {}", element.name(), id.empty() ? "" : " ", id, name, fault);
  }

  [[nodiscard]] std::string value_fault(std::string_view name, std::string_view value) const {
    const auto* const rule = std::ranges::find_if(
        attribute_rules, [&](const AttributeRule& each) { return contains_word(each.names, name); });
    switch (rule == attribute_rules.end() ? Type::text : rule->type) {
      case Type::text:
        return {};
      case Type::bandwidth:
        return bandwidth_fault(value);
      case Type::optional_bandwidth:
        return value.empty() ? "" : bandwidth_fault(value);
      case Type::latency:
        return latency_fault(value);
      case Type::speeds:
        return speeds_fault(value);
      case Type::count:
        return count_fault(value);
      case Type::number:
        return number_fault(value);
      case Type::choice:
        if (contains_word(rule->choices, value)) return {};
        return fmt::format("'{}' is not one of: {}", value, rule->choices);
      case Type::profile:
        return value.empty() ? "" : fmt::format("'{}': {}", value, no_profiles);
    }
    return {};
  }

  /// SimGrid wants properties first, then what a zone holds, then its routes. What follows the properties tells it
  /// whether the zone holds inner zones or hosts; a link there means hosts, so inner zones must stand before links.
  void check_zone_order(const pugi::xml_node& zone) {
    constexpr std::string_view of_inner = "zone AS cluster peer zoneRoute ASroute bypassZoneRoute bypassASroute";
    constexpr std::string_view of_hosts = "host router cabinet host_link route bypassRoute";
    int stage = 0;
    std::string_view first;  // the first child that is no property
    std::string_view host;   // the first of those that only a zone with hosts has
    for (const pugi::xml_node& child : zone.children()) {
      const std::string_view name = child.name();
      const bool route = name.ends_with("oute") || name.starts_with("bypass");
      const int own = name == "prop" ? 0 : route ? 2 : 1;
      if (own < stage) {
        problems_.fatal(place(child), "<{}> must stand before the {} of its zone", name,
                        own == 1 ? "routes" : "elements and routes");
      }
      stage = std::max(stage, own);
      if (own == 0) continue;
      if (first.empty()) first = name;
      if (host.empty() && contains_word(of_hosts, name)) host = name;
      const bool inner = contains_word(of_inner, name);
      if (contains_word(of_inner, first) ? name == host : inner) {
        if (host.empty()) {
          problems_.fatal(place(child), "<{}> must stand before <{}> in its zone", name, first);
        } else {
          problems_.fatal(place(child), "a zone with <{}> cannot have <{}>: put the hosts into a zone of their own",
                          inner ? host : first, name);
        }
        return;
      }
    }
  }

  PlatformProblems& problems_;
  std::vector<std::string_view> seen_;  ///< attributes of an element
};

/// What stands outside the root element. SimGrid asks for its document type and takes no other.
void check_prolog(const pugi::xml_document& document, PlatformProblems& problems) {
  constexpr std::string_view wanted = "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">";
  const pugi::xml_node root = document.document_element();
  std::size_t types = 0;
  for (const pugi::xml_node& node : document.children()) {
    if (node.type() == pugi::node_element && node != root) {
      problems.fatal(place(node), "a second root element <{}>", node.name());
    } else if (node.type() == pugi::node_pcdata || node.type() == pugi::node_cdata) {
      problems.fatal(text_place(node), "text outside <{}>", root.name());
    } else if (node.type() == pugi::node_declaration) {
      for (const pugi::xml_attribute& attribute : node.attributes()) {
        const std::string_view name = attribute.name();
        if (name != "version" && name != "encoding")
          problems.fatal(place(node), "SimGrid does not take '{}' in <?xml ... ?>", name);
      }
    } else if (node.type() == pugi::node_doctype) {
      std::vector<std::string_view> words;
      for (const std::string_view word : split(node.value(), ' ')) {
        if (!word.empty()) words.push_back(word);
      }
      const bool quoted = words.size() == 3 && words[2].size() > 2 && words[2].front() == words[2].back();
      const std::string_view url = quoted ? words[2].substr(1, words[2].size() - 2) : "";
      const bool known =
          url == "https://simgrid.org/simgrid.dtd" || url == "http://simgrid.gforge.inria.fr/simgrid/simgrid.dtd";
      if (++types > 1 || !known || words[0] != "platform" || words[1] != "SYSTEM") {
        problems.fatal(place(node), "the document type must be {}, once", wanted);
      }
    }
  }
  if (types == 0) problems.fatal(place(root), "the line {} is missing before <{}>", wanted, root.name());
}

}  // namespace

void check_schema(const pugi::xml_document& document, PlatformProblems& problems) {
  check_prolog(document, problems);
  const pugi::xml_node root = document.document_element();
  if (std::string_view(root.name()) != "platform") {
    problems.fatal(place(root), "the root element is <{}>, must be <platform>", root.name());
    return;
  }
  SchemaCheck(problems).check_element(root, *find_tag("platform"));
  const std::string_view version = root.attribute("version").value();
  if (!version.empty() && number_fault(version).empty() && version != "4" && version != "4.0" && version != "4.1") {
    problems.fatal(place(root), "version '{}' of the platform format is not supported, must be 4.1", version);
  }
  std::size_t zones = 0;
  constexpr std::array<std::string_view, 5> outermost{"zone", "AS", "cluster", "cabinet", "peer"};
  for (const pugi::xml_node& child : root.children()) {
    if (std::ranges::find(outermost, child.name()) == outermost.end()) continue;
    if (++zones == 2) {
      problems.fatal(place(child), "a second <{}> beside the first: put all into one outermost zone", child.name());
    }
  }
  if (zones == 0) problems.fatal(place(root), "<platform> is empty: it must hold a zone with hosts");
}

}  // namespace hcclsim::sim
