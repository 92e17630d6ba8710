#include "sim/platform/passes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <type_traits>
#include <unordered_map>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/platform/catalog.hpp"
#include "sim/platform/values.hpp"

namespace hcclsim::sim {
namespace {

constexpr std::array<std::string_view, 6> kinds{"hccs", "pcie", "sio", "ub", "roce", "other"};
constexpr std::array<std::string_view, 5> speeds{"nominal", "low", "high", "read", "write"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What parse_bandwidth or parse_bytes finds wrong with a value; empty if nothing.
template <typename Value>
std::string parse_fault(Value (*parse)(std::string_view), std::string_view text) {
  try {
    const Value value = parse(text);
    if (!(value > 0)) return fmt::format("'{}' must be positive", text);
    if constexpr (std::is_same_v<Value, BytesPerSecond>) return plausible_bandwidth_fault(text, value);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

/// What is wrong with a value of a property of an NPU; empty if nothing.
std::string npu_fault(const NpuProperty& property, std::string_view text) {
  switch (property.form) {
    case NpuProperty::Form::bytes:
      return parse_fault(parse_bytes, text);
    case NpuProperty::Form::bandwidth:
      return parse_fault(parse_bandwidth, text);
    case NpuProperty::Form::count:
    case NpuProperty::Form::number:
      break;
  }
  if (std::string fault = number_fault(text); !fault.empty()) return fault;
  const double value = parse_number<double>(text).value();
  const bool whole = property.form == NpuProperty::Form::count;
  if (value >= property.lowest && value <= property.highest && (!whole || value == std::floor(value))) return {};
  return fmt::format("'{}' must be a {} from {} to {}", text, whole ? "whole number" : "number", property.lowest,
                     property.highest);
}

const NpuProperty* find_npu_property(std::string_view key) {
  const auto known = npu_properties();
  const auto found = std::find_if(known.begin(), known.end(), [&](const NpuProperty& each) { return each.key == key; });
  return found == known.end() ? nullptr : &*found;
}

class PropertyCheck {
 public:
  PropertyCheck(const pugi::xml_node& platform, const PlatformNames& names, NpusOfFile npus, PlatformProblems& problems)
      : outermost_(platform.first_child()), names_(names), npus_(npus), problems_(problems) {}

  void check() {
    for (const pugi::xml_node& prop : outermost_.children("prop")) check_zone_property(prop);
    check_kind_ranges();
    check_elements(outermost_);
    check_npus();
  }

 private:
  template <typename Value>
  void check_value(const pugi::xml_node& prop, Value (*parse)(std::string_view)) {
    report(prop, parse_fault(parse, prop.attribute("value").value()));
  }

  /// Reports what is wrong with a property, if anything is.
  void report(const pugi::xml_node& prop, const std::string& fault) {
    if (fault.empty()) return;
    problems_.fatal(place(prop), "{} {}: property '{}': {}", prop.parent().name(),
                    prop.parent().attribute("id").value(), prop.attribute("id").value(), fault);
  }

  void check_kind(const pugi::xml_node& prop) {
    const std::string_view value = prop.attribute("value").value();
    if (!contains(kinds, value)) {
      problems_.fatal(place(prop), "property '{}' is '{}', must be one of: {}", prop.attribute("id").value(), value,
                      fmt::join(kinds, " "));
    }
  }

  /// The value, and that there is something to choose from; whether it has several ways is seen when it is loaded.
  void check_routing(const pugi::xml_node& prop) {
    Routing routing;
    try {
      routing = parse_routing(prop.attribute("value").value());
    } catch (const Error& error) {
      problems_.fatal(place(prop), "property 'fabric.routing': {}", error.what());
      return;
    }
    const bool fabric = std::ranges::any_of(names_.zones(), [](const PlatformZone& zone) {
      const std::string_view topology = zone.element.attribute("topology").value();
      return topology == "FAT_TREE" || zone.routing == "Floyd" || zone.routing.starts_with("Dijkstra");
    });
    if (routing.kind == RoutingKind::file || fabric) return;
    problems_.fatal(
        place(prop),
        "property 'fabric.routing' is '{}', but there is no fabric: a cluster of topology FAT_TREE, or hosts "
        "and routers in a zone of routing Dijkstra or Floyd",
        prop.attribute("value").value());
  }

  void check_zone_property(const pugi::xml_node& prop) {
    const std::string_view id = prop.attribute("id").value();
    const std::string_view value = prop.attribute("value").value();
    if (id == "fabric.kind") {
      check_kind(prop);
    } else if (id == "fabric.routing") {
      check_routing(prop);
    } else if (id.starts_with("link.")) {
      const std::vector<std::string_view> parts = split(id, '.');
      const bool known_kind = parts.size() == 3 && contains(kinds, parts[1]);
      if (!known_kind || (parts[2] != "source" && !contains(speeds, parts[2]))) {
        problems_.fatal(place(prop),
                        "property '{}' must be link.KIND.SPEED with KIND one of {} and SPEED one of {}, or "
                        "link.KIND.source",
                        id, fmt::join(kinds, " "), fmt::join(speeds, " "));
      } else if (parts[2] != "source") {
        check_value(prop, parse_bandwidth);
        kind_values_.push_back({parts[1], parts[2], value});
      }
    } else if (id.starts_with("npu.")) {
      const NpuProperty* const known = find_npu_property(id.substr(std::string_view("npu.").size()));
      if (known != nullptr) {
        report(prop, npu_fault(*known, value));
      } else {
        problems_.fatal(place(prop), "property '{}' must be npu.KEY with KEY one of {}", id,
                        names_in(npu_properties(), &NpuProperty::key, " "));
      }
    } else if (id == "npus_per_server") {
      const std::string fault = count_fault(value);
      if (!fault.empty()) problems_.fatal(place(prop), "property '{}': {}", id, fault);
      npus_per_server_ = parse_number<std::uint32_t>(value).value_or(0);
    } else if (id == "reduce.bandwidth") {
      check_value(prop, parse_bandwidth);
    } else if (id == "sdma.large_bytes") {
      check_value(prop, parse_bytes);
    } else if (id == "op.issue") {
      if (value != "whole" && value != "task") {
        problems_.fatal(place(prop), "property 'op.issue' is '{}', must be whole or task", value);
      }
    } else if (contains(times(), id)) {
      constexpr double highest_us = 1e6;
      std::string fault = number_fault(value);
      if (fault.empty() && value.starts_with('-')) fault = fmt::format("'{}' is negative", value);
      if (fault.empty() && parse_number<double>(value) > highest_us)
        fault = fmt::format("'{}' is more than {}", value, highest_us);
      if (!fault.empty()) problems_.fatal(place(prop), "property '{}', in microseconds: {}", id, fault);
    } else {
      const bool is_cluster = outermost_.name() == std::string_view("cluster");  // its properties are those of hosts
      check_spelling(prop, is_cluster ? host_names_ : zone_names_);
    }
  }

  /// Properties of people's own are left alone, unless one looks like a known one.
  void check_spelling(const pugi::xml_node& prop, const std::vector<std::string>& known) {
    const std::string_view id = prop.attribute("id").value();
    if (contains(known, id)) return;
    const std::string meant = did_you_mean(id, known);
    if (!meant.empty()) problems_.fatal(place(prop), "unknown property '{}'{}", id, meant);
  }

  static const std::vector<std::string>& times() {
    static const std::vector<std::string> properties = time_properties();
    return properties;
  }
  static std::vector<std::string> zone_properties() {
    std::vector<std::string> names{"fabric.kind",      "fabric.routing",   "npus_per_server",
                                   "reduce.bandwidth", "sdma.large_bytes", "name",
                                   "description",      "generated_by",     "op.issue"};
    for (const std::string& time : times()) names.push_back(time);
    return names;
  }
  static std::vector<std::string> host_properties() {
    std::vector<std::string> names{"npu", "cpu", "server", "device", "roce", "super_pod"};
    for (const NpuProperty& known : npu_properties()) names.emplace_back(known.key);
    return names;
  }
  static std::vector<std::string> link_properties() {
    std::vector<std::string> names{"kind"};
    names.insert(names.end(), speeds.begin(), speeds.end());
    return names;
  }

  /// Links, and properties that are given twice, in all zones.
  void check_elements(const pugi::xml_node& parent) {
    check_twice(parent);
    for (const pugi::xml_node& child : parent.children()) {
      const std::string_view tag = child.name();
      if (tag == "zone" || tag == "AS") check_elements(child);
      if (tag == "link") check_link(child);
      if (tag == "link" || tag == "host" || tag == "cluster") check_twice(child);
    }
  }

  /// SimGrid takes the first of several properties of one name.
  void check_twice(const pugi::xml_node& element) {
    seen_.clear();
    for (const pugi::xml_node& prop : element.children("prop")) {
      const auto [first, added] = seen_.try_emplace(prop.attribute("id").value(), prop);
      if (!added) {
        problems_.warn(place(prop), "property '{}' is given twice; the value of line {} is used", first->first,
                       problems_.line(place(first->second)));
      }
    }
  }

  void check_link(const pugi::xml_node& link) {
    for (const pugi::xml_node& prop : link.children("prop")) {
      const std::string_view id = prop.attribute("id").value();
      if (id == "kind") check_kind(prop);
      if (contains(speeds, id)) check_value(prop, parse_bandwidth);
      check_spelling(prop, link_names_);
    }
    const std::string_view bandwidth = link.attribute("bandwidth").value();
    const std::string_view low = range_end(link, "low");
    const std::string_view high = range_end(link, "high");
    const auto warn = [&](std::string_view relation, std::string_view property, std::string_view value) {
      problems_.warn(place(link), "link {}: bandwidth {} is {} its property {}, {}", link.attribute("id").value(),
                     bandwidth, relation, property, value);
    };
    if (speed(bandwidth) < speed(low)) warn("below", "low", low);
    if (speed(high) > 0 && speed(bandwidth) > speed(high)) warn("above", "high", high);
    if (!kind_holds(link) && !(property(link, "low") && property(link, "high"))) {
      problems_.warn(place(link), "link {}: the range of kind {} does not hold its bandwidth, {}: it has no range",
                     link.attribute("id").value(), property(link, "kind").value(), bandwidth);
    }
    if (speed(high) > 0 && speed(low) > speed(high) && high != bandwidth) {
      problems_.fatal(place(link), "link {}: its low speed {} is above its high one, {}", link.attribute("id").value(),
                      low, high);
    }
    for (const std::string_view task : {"read", "write"}) {
      const std::string_view reached = link_value(link, task);
      if (speed(bandwidth) <= 0 || speed(reached) <= speed(bandwidth) * (1 + 1e-9)) continue;
      problems_.fatal(place(link), "link {}: its {} speed {} is above its bandwidth {}, which no task can exceed",
                      link.attribute("id").value(), task, reached, bandwidth);
    }
  }

  /// A speed of a link: its own property, else that of its kind in the outermost zone; empty if neither is there.
  std::string_view link_value(const pugi::xml_node& link, std::string_view what) {
    if (const pugi::xml_attribute own = property(link, what.data())) return own.value();
    return kind_value(property(link, "kind").value(), what);
  }

  [[nodiscard]] std::string_view kind_value(std::string_view kind, std::string_view what) const {
    for (const KindValue& value : kind_values_) {
      if (value.kind == kind && value.what == what) return value.text;
    }
    return {};
  }

  /// Whether the range of the link's kind holds its bandwidth; if not, sim::Cluster does not take it for the link.
  [[nodiscard]] bool kind_holds(const pugi::xml_node& link) {
    const std::string_view kind = property(link, "kind").value();
    const std::string_view high = kind_value(kind, "high");
    const BytesPerSecond bandwidth = speed(link.attribute("bandwidth").value());
    return speed(kind_value(kind, "low")) <= bandwidth && (high.empty() || bandwidth <= speed(high));
  }

  /// An end of a link's range: its own property, else that of its kind, else its bandwidth.
  std::string_view range_end(const pugi::xml_node& link, std::string_view which) {
    if (const pugi::xml_attribute own = property(link, which.data())) return own.value();
    const std::string_view of_kind = kind_value(property(link, "kind").value(), which);
    return kind_holds(link) && !of_kind.empty() ? of_kind : link.attribute("bandwidth").value();
  }

  void check_kind_ranges() {
    for (const std::string_view kind : kinds) {
      const std::string_view low = kind_value(kind, "low");
      const std::string_view high = kind_value(kind, "high");
      if (high.empty() || speed(low) <= speed(high)) continue;
      problems_.fatal(place(outermost_), "property 'link.{}.low', {}, is above 'link.{}.high', {}", kind, low, kind,
                      high);
    }
  }

  /// Bytes per second of a valid bandwidth, 0 of an empty or wrong one; kept, as links are alike.
  BytesPerSecond speed(std::string_view text) {
    if (text.empty()) return 0;
    const auto [known, added] = known_speeds_.try_emplace(text, 0);
    if (added && parse_fault(parse_bandwidth, text).empty()) known->second = parse_bandwidth(text);
    return known->second;
  }

  void check_npus() {
    std::size_t npus = 0;
    std::size_t numbered = 0;
    std::size_t in_pods = 0;
    std::unordered_map<std::uint64_t, const PlatformPoint*> places;
    for (const PlatformPoint& point : names_.points()) {
      if (!point.host) continue;
      const pugi::xml_node soc = point.element.find_child_by_attribute("prop", "id", "npu");
      if (soc.empty()) continue;
      ++npus;
      check_npu(point, soc);
      const std::optional<std::uint64_t> at = npu_place(point, numbered);
      if (check_super_pod(point, at)) ++in_pods;
      if (!at) continue;
      const auto [first, added] = places.try_emplace(*at, &point);
      if (!added) {
        problems_.fatal(place(point.element), "hosts '{}' and '{}' are both device {} of server {}",
                        first->second->name, point.name, static_cast<std::uint32_t>(*at), *at >> 32);
      }
    }
    if (npus == 0 && npus_ == NpusOfFile::are_there) report_no_npus();
    if (numbered != 0 && numbered != npus) {
      problems_.fatal(place(outermost_),
                      "{} of {} NPUs have the properties server and device: give them to all or to none", numbered,
                      npus);
    }
    if (in_pods != 0 && in_pods != npus) {
      problems_.fatal(place(outermost_), "{} of {} NPUs have the property super_pod: give it to all or to none",
                      in_pods, npus);
    }
  }

  void report_no_npus() {
    std::vector<std::string_view> hosts;
    for (const PlatformPoint& point : names_.points()) {
      if (point.host) hosts.push_back(point.name);
    }
    const std::string there =
        hosts.empty()       ? "it has no hosts"
        : hosts.size() == 1 ? fmt::format("its host is {}", hosts.front())
                            : fmt::format("it has {} hosts, from {} to {}", hosts.size(), hosts.front(), hosts.back());
    problems_.fatal(place(outermost_),
                    "no NPU: no host has a property npu, such as <prop id=\"npu\" value=\"Ascend910A\"/>; {}: say "
                    "which are NPUs, as with --npu-hosts '*' --soc Ascend910B2",
                    there);
  }

  /// What an NPU is: its type and the properties that its host states itself.
  struct NpuKind {
    const SocEntry* soc = nullptr;
    std::map<std::string_view, std::string_view> own;
    friend bool operator==(const NpuKind&, const NpuKind&) = default;
  };

  void check_npu(const PlatformPoint& point, const pugi::xml_node& soc) {
    if (std::exchange(last_npu_, point.element) == point.element) return;  // the NPUs of a cluster are one element
    NpuKind kind{check_soc(soc), {}};
    for (const pugi::xml_node& prop : point.element.children("prop")) {
      const std::string_view key = prop.attribute("id").value();
      const std::string_view value = prop.attribute("value").value();
      if (key == "roce") report(prop, port_fault(value));
      check_spelling(prop, host_names_);
      const NpuProperty* const known = find_npu_property(key);
      if (known == nullptr) continue;
      report(prop, npu_fault(*known, value));
      kind.own.try_emplace(key, value);
    }
    if (first_npu_ == nullptr) {
      first_npu_ = &point;
      first_kind_ = std::move(kind);
    } else if (kind.soc != nullptr && first_kind_.soc != nullptr && kind != first_kind_ &&
               !std::exchange(mixed_, true)) {
      const bool types_differ = kind.soc != first_kind_.soc;
      problems_.warn(place(types_differ ? soc : point.element),
                     "{} ({}) and {} ({}, line {}) differ{}; NPUs that train together must be of one kind", point.name,
                     soc.attribute("value").value(), first_npu_->name, property(first_npu_->element, "npu").value(),
                     problems_.line(place(first_npu_->element)), types_differ ? "" : " in their properties");
    }
  }

  /// Checks the super-pod of an NPU, if it is given: all NPUs of a server have the same one, and each needs a RoCE
  /// port.
  bool check_super_pod(const PlatformPoint& point, const std::optional<std::uint64_t>& at) {
    const pugi::xml_node prop = point.element.find_child_by_attribute("prop", "id", "super_pod");
    if (prop.empty()) return false;
    if (point.element.find_child_by_attribute("prop", "id", "roce").empty()) {
      problems_.fatal(place(point.element), "host '{}' has the property super_pod but not roce, its port to others",
                      point.name);
    }
    const std::optional<std::uint32_t> number = whole(prop);
    if (!number || !at) return true;
    const auto server = static_cast<std::uint32_t>(*at >> 32);
    const auto [first, added] = super_pods_.try_emplace(server, *number);
    if (first->second != *number) {
      problems_.fatal(place(prop), "host '{}' of server {} is in super-pod {}, others of the server are in {}",
                      point.name, server, *number, first->second);
    }
    return true;
  }

  /// What is wrong with a link as an NPU's RoCE port; empty if nothing.
  [[nodiscard]] std::string port_fault(std::string_view name) const {
    std::string fault = names_.link_fault(name, "UP", PTRDIFF_MAX);
    if (!fault.empty()) return fault;
    const PlatformLink* const link = names_.find_link(std::string(name));
    const bool roce = link != nullptr && property(link->element, "kind").value() == std::string_view("roce");
    return roce ? std::string() : fmt::format("link '{}' is not of kind roce", name);
  }

  /// The type of an NPU; nullptr if it is not known, which is reported once for several NPUs of the same type in a row.
  const SocEntry* check_soc(const pugi::xml_node& prop) {
    const std::string_view value = prop.attribute("value").value();
    const SocEntry* const found = soc_of_property(value);
    if (std::exchange(last_soc_, value) == value) return found;
    if (found == nullptr) {
      problems_.fatal(place(prop), "unknown NPU type '{}'; known: {}", value, names_in(soc_entries(), &SocEntry::name));
    } else if (const std::string note = ambiguous_soc(value); !note.empty()) {
      problems_.warn(place(prop), "{}", note);
    }
    return found;
  }

  /// Server and device of an NPU as one number, from its properties or, with npus_per_server, from its name; nothing if
  /// its zone decides.
  std::optional<std::uint64_t> npu_place(const PlatformPoint& point, std::size_t& numbered) {
    const pugi::xml_node server = point.element.find_child_by_attribute("prop", "id", "server");
    const pugi::xml_node device = point.element.find_child_by_attribute("prop", "id", "device");
    if (server.empty() != device.empty()) {
      problems_.fatal(place(point.element), "host '{}' has the property {} but not {}", point.name,
                      server.empty() ? "device" : "server", server.empty() ? "server" : "device");
      return std::nullopt;
    }
    if (!server.empty()) {
      ++numbered;
      const std::optional<std::uint32_t> server_number = whole(server);
      const std::optional<std::uint32_t> device_number = whole(device);
      if (!server_number || !device_number) return std::nullopt;
      return std::uint64_t{*server_number} << 32 | *device_number;
    }
    if (npus_per_server_ == 0) return std::nullopt;
    const std::size_t digits = point.name.find_last_not_of("0123456789") + 1;
    const std::optional<std::uint32_t> number =
        parse_number<std::uint32_t>(std::string_view(point.name).substr(digits));
    if (!number) {
      problems_.fatal(place(point.element), "host '{}' has no properties server and device and no number in its name",
                      point.name);
      return std::nullopt;
    }
    return std::uint64_t{*number / npus_per_server_} << 32 | *number % npus_per_server_;
  }

  std::optional<std::uint32_t> whole(const pugi::xml_node& prop) {
    const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(prop.attribute("value").value());
    if (!number) {
      problems_.fatal(place(prop), "property '{}' is '{}', must be a whole number", prop.attribute("id").value(),
                      prop.attribute("value").value());
    }
    return number;
  }

  struct KindValue {
    std::string_view kind;
    std::string_view what;
    std::string_view text;
  };

  const std::vector<std::string> zone_names_ = zone_properties();
  const std::vector<std::string> link_names_ = link_properties();
  const std::vector<std::string> host_names_ = host_properties();
  pugi::xml_node outermost_;
  const PlatformNames& names_;
  NpusOfFile npus_;
  PlatformProblems& problems_;
  std::uint32_t npus_per_server_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> super_pods_;  // by server
  std::vector<KindValue> kind_values_;
  std::unordered_map<std::string_view, BytesPerSecond> known_speeds_;
  std::string_view last_soc_;
  pugi::xml_node last_npu_;
  const PlatformPoint* first_npu_ = nullptr;
  NpuKind first_kind_;
  bool mixed_ = false;  ///< NPUs that differ were found; reported once
  std::unordered_map<std::string_view, pugi::xml_node> seen_;
};

}  // namespace

void check_properties(const pugi::xml_node& platform, const PlatformNames& names, NpusOfFile npus,
                      PlatformProblems& problems) {
  PropertyCheck(platform, names, npus, problems).check();
}

}  // namespace hcclsim::sim
