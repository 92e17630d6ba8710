#include "sim/platform_properties.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <unordered_map>

#include "base/error.hpp"
#include "base/units.hpp"
#include "sim/platform_catalog.hpp"
#include "sim/platform_schema.hpp"
#include "sim/platform_values.hpp"

namespace hcclsim::sim {
namespace {

constexpr std::array<std::string_view, 6> kinds{"hccs", "pcie", "sio", "ub", "roce", "other"};
constexpr std::array<std::string_view, 5> speeds{"nominal", "low", "high", "read", "write"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What parse_bandwidth or parse_bytes finds wrong with a value; empty if nothing.
template <typename Parse>
std::string parse_fault(Parse parse, std::string_view text) {
  try {
    return parse(text) > 0 ? std::string() : fmt::format("'{}' must be positive", text);
  } catch (const Error& error) {
    return error.what();
  }
}

class PropertyCheck {
 public:
  PropertyCheck(const pugi::xml_node& platform, const PlatformNames& names, PlatformProblems& problems)
      : outermost_(platform.first_child()), names_(names), problems_(problems) {}

  void check() {
    for (const pugi::xml_node& prop : outermost_.children("prop")) check_zone_property(prop);
    check_elements(outermost_);
    check_npus();
  }

 private:
  template <typename Parse>
  void check_value(const pugi::xml_node& prop, Parse parse) {
    const std::string fault = parse_fault(parse, prop.attribute("value").value());
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

  void check_zone_property(const pugi::xml_node& prop) {
    const std::string_view id = prop.attribute("id").value();
    const std::string_view value = prop.attribute("value").value();
    if (id == "fabric.kind") {
      check_kind(prop);
    } else if (id.starts_with("link.")) {
      const std::vector<std::string_view> parts = split(id, '.');
      if (parts.size() != 3 || !contains(kinds, parts[1]) || !contains(speeds, parts[2])) {
        problems_.fatal(place(prop), "property '{}' must be link.KIND.SPEED with KIND one of {} and SPEED one of {}",
                        id, fmt::join(kinds, " "), fmt::join(speeds, " "));
      } else {
        check_value(prop, parse_bandwidth);
        kind_values_.push_back({parts[1], parts[2], value});
      }
    } else if (id == "npus_per_server") {
      const std::string fault = count_fault(value);
      if (!fault.empty()) problems_.fatal(place(prop), "property '{}': {}", id, fault);
      npus_per_server_ = parse_whole(value).value_or(0);
    } else if (id == "reduce.bandwidth") {
      check_value(prop, parse_bandwidth);
    } else if (id == "sdma.large_bytes") {
      check_value(prop, parse_bytes);
    } else if (std::any_of(task_costs().begin(), task_costs().end(),
                           [&](const TaskCost& c) { return c.property == id; })) {
      std::string fault = number_fault(value);
      if (fault.empty() && value.starts_with('-')) fault = fmt::format("'{}' is negative", value);
      if (!fault.empty()) problems_.fatal(place(prop), "property '{}', in microseconds: {}", id, fault);
    }
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
    }
    const std::string_view bandwidth = link.attribute("bandwidth").value();
    const std::string_view low = link_value(link, "low");
    const std::string_view high = link_value(link, "high");
    const auto warn = [&](std::string_view relation, std::string_view property, std::string_view value) {
      problems_.warn(place(link), "link {}: bandwidth {} is {} its property {}, {}", link.attribute("id").value(),
                     bandwidth, relation, property, value);
    };
    if (speed(bandwidth) < speed(low)) warn("below", "low", low);
    if (speed(high) > 0 && speed(bandwidth) > speed(high)) warn("above", "high", high);
  }

  /// A speed of a link: its own property, else that of its kind in the outermost zone; empty if neither is there.
  std::string_view link_value(const pugi::xml_node& link, std::string_view what) {
    const pugi::xml_node own = link.find_child_by_attribute("prop", "id", what.data());
    if (!own.empty()) return own.attribute("value").value();
    const std::string_view kind = link.find_child_by_attribute("prop", "id", "kind").attribute("value").value();
    for (const KindValue& value : kind_values_) {
      if (value.kind == kind && value.what == what) return value.text;
    }
    return {};
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
    std::unordered_map<std::uint64_t, const PlatformPoint*> places;
    for (const PlatformPoint& point : names_.points()) {
      if (!point.host) continue;
      const pugi::xml_node soc = point.element.find_child_by_attribute("prop", "id", "npu");
      if (soc.empty()) continue;
      ++npus;
      check_soc(soc);
      const pugi::xml_node size = point.element.find_child_by_attribute("prop", "id", "hbm_bytes");
      if (!size.empty()) check_value(size, parse_bytes);
      const std::optional<std::uint64_t> at = npu_place(point, numbered);
      if (!at) continue;
      const auto [first, added] = places.try_emplace(*at, &point);
      if (!added) {
        problems_.fatal(place(point.element), "hosts '{}' and '{}' are both device {} of server {}",
                        first->second->name, point.name, static_cast<std::uint32_t>(*at), *at >> 32);
      }
    }
    if (npus == 0) {
      problems_.fatal(place(outermost_),
                      "no NPU: no host has a property npu, such as <prop id=\"npu\" value=\"Ascend910A\"/>");
    }
    if (numbered != 0 && numbered != npus) {
      problems_.fatal(place(outermost_),
                      "{} of {} NPUs have the properties server and device: give them to all or to none", numbered,
                      npus);
    }
  }

  void check_soc(const pugi::xml_node& prop) {
    const std::string_view value = prop.attribute("value").value();
    const auto known = soc_entries();
    if (std::any_of(known.begin(), known.end(), [&](const SocEntry& soc) { return soc.name == value; })) return;
    if (std::exchange(last_unknown_soc_, value) == value) return;
    problems_.warn(place(prop), "no data of NPU type '{}'{}; its host must state cores, clock and memory itself", value,
                   value == "Ascend910B" ? " (Ascend910B1 to B4, or old-910B for the 30-core bin of 910A)" : "");
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
    const std::optional<std::uint32_t> number = parse_whole(std::string_view(point.name).substr(digits));
    if (!number) {
      problems_.fatal(place(point.element), "host '{}' has no properties server and device and no number in its name",
                      point.name);
      return std::nullopt;
    }
    return std::uint64_t{*number / npus_per_server_} << 32 | *number % npus_per_server_;
  }

  std::optional<std::uint32_t> whole(const pugi::xml_node& prop) {
    const std::optional<std::uint32_t> number = parse_whole(prop.attribute("value").value());
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

  pugi::xml_node outermost_;
  const PlatformNames& names_;
  PlatformProblems& problems_;
  std::uint32_t npus_per_server_ = 0;
  std::vector<KindValue> kind_values_;
  std::unordered_map<std::string_view, BytesPerSecond> known_speeds_;
  std::string_view last_unknown_soc_;
  std::unordered_map<std::string_view, pugi::xml_node> seen_;
};

}  // namespace

void check_properties(const pugi::xml_node& platform, const PlatformNames& names, PlatformProblems& problems) {
  PropertyCheck(platform, names, problems).check();
}

}  // namespace hcclsim::sim
