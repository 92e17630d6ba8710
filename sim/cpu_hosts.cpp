#include "sim/cpu_hosts.hpp"

#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/simgrid_engine.hpp"

namespace hcclsim::sim {
namespace {

/// The number at the end of a name, such as 1 of "cpu-1"; 0 without one.
std::uint32_t number_at_end(std::string_view name) {
  return parse_number<std::uint32_t>(name.substr(name.find_last_not_of("0123456789") + 1)).value_or(0);
}

}  // namespace

CpuHosts::CpuHosts(Cluster& cluster) : cluster_(cluster) {
  for (simgrid::s4u::Host* const host : engine().get_all_hosts()) {
    if (host->get_property("cpu") != nullptr) hosts_.push_back(host);
  }
  std::ranges::sort(hosts_, [](const auto* a, const auto* b) {
    return std::pair(number_at_end(a->get_name()), a->get_name()) <
           std::pair(number_at_end(b->get_name()), b->get_name());
  });
  if (hosts_.size() > cluster.servers()) hosts_.resize(cluster.servers());
  for (const auto* const host : hosts_) names_.push_back(host->get_name());
}

simgrid::s4u::Host& CpuHosts::host_of(Rank npu) const {
  auto* const host = engine().host_by_name_or_null(cluster_.npu(npu).name);
  if (host == nullptr) internal_error("NPU '{}' is no host", cluster_.npu(npu).name);
  return *host;
}

Rank CpuHosts::gateway(std::uint32_t cpu, Rank of) const {
  std::optional<Rank> first;
  for (Rank npu = 0; npu < cluster_.size(); ++npu) {
    if (cluster_.npu(npu).server != cpu) continue;
    if (cluster_.npu(npu).device == cluster_.npu(of).device) return npu;
    if (!first.has_value()) first = npu;
  }
  if (!first.has_value()) bad_input("platform", "{}: the server of {} has no NPU", cluster_.path(), names_[cpu]);
  return *first;
}

std::vector<LinkId> CpuHosts::local_way(Rank npu, std::uint32_t cpu, bool up) const {
  std::vector<simgrid::s4u::Link*> way;
  simgrid::s4u::Host& from = up ? host_of(npu) : *hosts_[cpu];
  simgrid::s4u::Host& to = up ? *hosts_[cpu] : host_of(npu);
  try {
    from.route_to(&to, way, nullptr);
  } catch (const std::exception&) {
    way.clear();
  }
  if (way.empty()) {
    bad_input("platform", "{}: no route between NPU '{}' and its CPU '{}'", cluster_.path(), cluster_.npu(npu).name,
              names_[cpu]);
  }
  std::vector<LinkId> links;
  for (const simgrid::s4u::Link* const part : way) {
    const std::optional<LinkId> known = cluster_.id_of(part);
    if (!known.has_value()) internal_error("link '{}' is unknown", part->get_name());
    links.push_back(*known);
  }
  return links;
}

const Route& CpuHosts::from_npu(Rank npu, std::uint32_t cpu) {
  const auto [place, is_new] = up_.try_emplace({npu, cpu});
  if (!is_new) return place->second;
  const Rank through = cluster_.npu(npu).server == cpu ? npu : gateway(cpu, npu);
  std::vector<LinkId> links;
  if (through != npu) links = cluster_.route(npu, through).links;
  const std::vector<LinkId> rest = local_way(through, cpu, true);
  links.insert(links.end(), rest.begin(), rest.end());
  place->second = cluster_.route_over(std::move(links), npu, through);
  return place->second;
}

const Route& CpuHosts::to_npu(std::uint32_t cpu, Rank npu) {
  const auto [place, is_new] = down_.try_emplace({cpu, npu});
  if (!is_new) return place->second;
  const Rank through = cluster_.npu(npu).server == cpu ? npu : gateway(cpu, npu);
  std::vector<LinkId> links = local_way(through, cpu, false);
  const bool is_local = through == npu;
  if (!is_local) {
    const std::vector<LinkId>& rest = cluster_.route(through, npu).links;
    links.insert(links.end(), rest.begin(), rest.end());
  }
  place->second = cluster_.route_over(std::move(links), through, npu);
  if (is_local) place->second.cpu = hosts_[cpu];
  return place->second;
}

const Route* CpuHosts::way_to(Rank npu) {
  const std::uint32_t server = cluster_.npu(npu).server;
  return server < size() ? &to_npu(server, npu) : nullptr;
}

const Route& CpuHosts::between(std::uint32_t from, std::uint32_t to) {
  const auto [place, is_new] = across_.try_emplace({from, to});
  if (!is_new) return place->second;
  const Rank source = gateway(from, 0);
  std::vector<LinkId> links = local_way(source, from, false);
  const Route& rest = from_npu(source, to);
  links.insert(links.end(), rest.links.begin(), rest.links.end());
  place->second = cluster_.route_over(std::move(links), source, rest.destination);
  return place->second;
}

}  // namespace hcclsim::sim
