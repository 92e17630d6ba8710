#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>

#include "base/error.hpp"
#include "sim/cluster.hpp"
#include "sim/simgrid_engine.hpp"

// RoCE between servers that the file connects in another way. SimGrid has one route between two hosts, and connects
// directly only hosts of one zone. So every NPU with a RoCE port has a second host; all these hosts are in one zone,
// and transfers over RoCE go between them.

namespace hcclsim::sim {
namespace {

constexpr const char* port_property = "roce";

std::string port_host_of(const std::string& npu) { return npu + " RoCE"; }

}  // namespace

void Cluster::make_port_hosts() {
  simgrid::s4u::NetZone* ports = nullptr;
  for (const simgrid::s4u::Host* const host : engine().get_all_hosts()) {
    if (host->get_property(port_property) == nullptr) continue;
    if (ports == nullptr) {
      ports = simgrid::s4u::create_empty_zone("RoCE ports");
      ports->set_parent(engine().get_netzone_root());
    }
    ports->create_host(port_host_of(host->get_name()), 1);  // transfers alone use it: any speed will do
  }
}

void Cluster::find_port_hosts() {
  for (const Npu& npu : npus_) port_hosts_.push_back(engine().host_by_name_or_null(port_host_of(npu.name)));
}

void Cluster::use_roce_between_servers() {
  if (!routes_.empty()) internal_error("{}: RoCE is chosen after routes were asked for", path_);
  roce_between_servers_ = true;
}

std::vector<LinkId> Cluster::way_between_ports(Rank source, Rank destination) const {
  const auto port = [&](Rank rank, const char* direction) {
    const auto name = npus_[rank].properties.find(port_property);
    if (port_hosts_[rank] == nullptr || name == npus_[rank].properties.end()) {
      bad_input(
          "platform",
          "{}: NPU '{}' has no property {}, the link that is its RoCE port, so that it cannot reach other servers "
          "over RoCE; 'hcclsim platform generate' writes it for servers that the unified bus joins",
          path_, npus_[rank].name, port_property);
    }
    const std::optional<LinkId> link = id_of(engine().link_by_name_or_null(name->second + direction));
    if (!link) internal_error("{}: port '{}' passed the check of the platform", path_, name->second);
    return *link;
  };
  return {port(source, "_UP"), port(destination, "_DOWN")};
}

}  // namespace hcclsim::sim
