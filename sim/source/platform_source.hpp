#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/units.hpp"

/// What Cluster takes from a platform file, whoever reads it: we ourselves (plain_source.hpp), or SimGrid
/// (sim/simgrid/), for what we do not read. Both number hosts and links in the same way and find the same routes.
namespace hcclsim::sim {

using LinkId = std::uint32_t;
using HostId = std::uint32_t;

/// A host that is an NPU or a CPU: it has property `npu` or `cpu`.
struct SourceHost {
  HostId id = 0;
  std::string name;
  std::uint32_t zone = 0;  ///< the same number for hosts that stand in the same zone
  std::map<std::string, std::string> properties;
};

/// A link in one direction; a SPLITDUPLEX link of the file is two of these, NAME_UP and NAME_DOWN. Properties that the
/// link does not have are null; the texts are valid while the link is visited.
struct SourceLink {
  std::string name;
  bool shared = true;  ///< false: FATPIPE
  BytesPerSecond bandwidth = 0;
  Seconds latency = 0;
  const char* kind = nullptr;
  const char* nominal = nullptr;
  const char* low = nullptr;
  const char* high = nullptr;
  const char* write = nullptr;
  const char* read = nullptr;
};

/// Sets the properties of a link by `value(key)`, null for those it does not have.
template <typename Value>
void set_properties(SourceLink& link, const Value& value) {
  link.kind = value("kind");
  link.nominal = value("nominal");
  link.low = value("low");
  link.high = value("high");
  link.write = value("write");
  link.read = value("read");
}

class PlatformSource {
 public:
  virtual ~PlatformSource() = default;

  /// The properties of the outermost zone.
  [[nodiscard]] virtual std::map<std::string, std::string> properties() const = 0;
  /// NPUs and CPUs in the order of the file.
  virtual void visit_hosts(const std::function<void(SourceHost)>& visit) const = 0;
  /// All links by LinkId, from 0: those of a zone by name, then those of its inner zones in the order of the file.
  virtual void visit_links(const std::function<void(const SourceLink&)>& visit) const = 0;
  /// The properties `route:FROM:TO` of all zones, with their values.
  virtual void visit_route_properties(const std::function<void(const std::string&, const char*)>& visit) const = 0;

  /// The links from one host to another, as the routing of the zones leads; empty if there is no way. For hosts that
  /// were visited.
  [[nodiscard]] virtual std::vector<LinkId> way(HostId from, HostId to) = 0;
};

}  // namespace hcclsim::sim
