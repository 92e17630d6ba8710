#pragma once

#include <cstdint>
#include <functional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/platform/problems.hpp"

/// What a platform file defines: hosts, routers and zones, which share one space of names, and links. Hosts that a
/// <cluster> makes are listed one by one. Collecting the names finds duplicates and clusters of the wrong size.
namespace hcclsim::sim {

/// Byte offset of an element's name in the file.
[[nodiscard]] inline std::ptrdiff_t place(const pugi::xml_node& node) { return node.offset_debug(); }

/// The value of a property that the element has itself; an empty attribute if it has not.
[[nodiscard]] inline pugi::xml_attribute property(const pugi::xml_node& element, const char* id) {
  return element.find_child_by_attribute("prop", "id", id).attribute("value");
}

inline constexpr std::uint32_t no_number = ~std::uint32_t{0};

struct PlatformPoint {
  std::string name;
  std::uint32_t zone = no_number;   ///< the zone it stands in; no_number for the outermost zone
  std::uint32_t inner = no_number;  ///< the zone that it is, if it is one
  bool host = false;
  pugi::xml_node element;  ///< where its properties are: the host itself or its cluster
};

struct PlatformZone {
  pugi::xml_node element;
  std::string routing;                ///< as in the file; "Fabric" for a cluster, cabinet or peer
  std::uint32_t parent = no_number;   ///< zone
  std::vector<std::uint32_t> points;  ///< direct ones
};

struct PlatformLink {
  std::string name;
  pugi::xml_node element;
  bool split = false;  ///< SPLITDUPLEX: SimGrid's links are name_UP and name_DOWN
};

/// A hash of names that finds a name given as any kind of text.
struct NameHash {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
  [[nodiscard]] std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
};
using NumberOfName = std::unordered_map<std::string, std::uint32_t, NameHash, std::equal_to<>>;

class PlatformNames {
 public:
  /// Collects all names under <platform>; duplicates and impossible clusters go to `problems`.
  PlatformNames(const pugi::xml_node& platform, PlatformProblems& problems);

  [[nodiscard]] const PlatformPoint* find_point(std::string_view name) const;
  [[nodiscard]] const PlatformLink* find_link(std::string_view name) const;
  [[nodiscard]] const std::vector<PlatformPoint>& points() const { return points_; }
  [[nodiscard]] const std::vector<PlatformZone>& zones() const { return zones_; }
  [[nodiscard]] const std::vector<PlatformLink>& links() const { return links_; }
  [[nodiscard]] std::uint32_t number(const PlatformPoint& point) const {
    return static_cast<std::uint32_t>(&point - points_.data());
  }
  [[nodiscard]] std::uint32_t number(const PlatformLink& link) const {
    return static_cast<std::uint32_t>(&link - links_.data());
  }
  /// Whether the zone or one around it is `outer`.
  [[nodiscard]] bool inside(std::uint32_t zone, std::uint32_t outer) const;

  /// What is wrong with a reference to this link in this direction ("UP", "DOWN", "NONE") at byte `at`: only links
  /// above it are known there. Empty if nothing is wrong.
  [[nodiscard]] std::string link_fault(std::string_view name, std::string_view direction, std::ptrdiff_t at) const;

 private:
  void collect(const pugi::xml_node& parent, std::uint32_t zone);
  void collect_cluster(const pugi::xml_node& cluster, std::uint32_t zone);
  std::uint32_t add_zone(const pugi::xml_node& element, std::string routing, std::uint32_t parent);
  void add_point(std::string name, std::uint32_t zone, bool host, const pugi::xml_node& element);
  void add_link(const pugi::xml_node& element);

  PlatformProblems& problems_;
  std::vector<PlatformPoint> points_;
  double links_of_clusters_ = 0;
  std::vector<PlatformZone> zones_;
  std::vector<PlatformLink> links_;
  NumberOfName point_numbers_;
  NumberOfName link_numbers_;
  bool links_by_clusters_ = false;  ///< clusters and cabinets make links of names that are not in the file
};

}  // namespace hcclsim::sim
