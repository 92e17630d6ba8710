#include "sim/cpu_hosts.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::sim {
namespace {

/// The number at the end of a name, such as 1 of "cpu-1"; 0 without one.
std::uint32_t number_at_end(std::string_view name) {
  return parse_number<std::uint32_t>(name.substr(name.find_last_not_of("0123456789") + 1)).value_or(0);
}

}  // namespace

CpuHosts::CpuHosts(Cluster& cluster) : cluster_(cluster), cpus_(cluster.cpus().begin(), cluster.cpus().end()) {
  std::ranges::sort(cpus_, [](const Cpu& a, const Cpu& b) {
    return std::pair(number_at_end(a.name), a.name) < std::pair(number_at_end(b.name), b.name);
  });
  if (cpus_.size() > cluster.servers()) cpus_.resize(cluster.servers());
}

Rank CpuHosts::gateway(std::uint32_t cpu, Rank of) const {
  std::optional<Rank> first;
  for (Rank npu = 0; npu < cluster_.size(); ++npu) {
    if (cluster_.npu(npu).server != cpu) continue;
    if (cluster_.npu(npu).device == cluster_.npu(of).device) return npu;
    if (!first.has_value()) first = npu;
  }
  if (!first.has_value()) bad_input("platform", "{}: the server of {} has no NPU", cluster_.path(), cpus_[cpu].name);
  return *first;
}

std::vector<LinkId> CpuHosts::local_way(Rank npu, std::uint32_t cpu, bool up) const {
  const HostId local = cluster_.npu(npu).host;
  std::vector<LinkId> links = up ? cluster_.way(local, cpus_[cpu].host) : cluster_.way(cpus_[cpu].host, local);
  if (links.empty()) {
    bad_input("platform", "{}: no route between NPU '{}' and its CPU '{}'", cluster_.path(), cluster_.npu(npu).name,
              cpus_[cpu].name);
  }
  return links;
}

Route CpuHosts::route_of(std::vector<LinkId> links, Rank source, Rank destination) const {
  Route route{.source = source,
              .destination = destination,
              .from = cluster_.npu(source).host,
              .to = cluster_.npu(destination).host,
              .links = std::move(links)};
  cluster_.complete(route);
  return route;
}

const Route& CpuHosts::from_npu(Rank npu, std::uint32_t cpu) {
  const auto [place, is_new] = up_.try_emplace({npu, cpu});
  if (!is_new) return place->second;
  const Rank through = cluster_.npu(npu).server == cpu ? npu : gateway(cpu, npu);
  std::vector<LinkId> links;
  if (through != npu) links = cluster_.route(npu, through).links;
  const std::vector<LinkId> rest = local_way(through, cpu, true);
  links.insert(links.end(), rest.begin(), rest.end());
  place->second = route_of(std::move(links), npu, through);
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
  place->second = route_of(std::move(links), through, npu);
  if (is_local) place->second.from = cpus_[cpu].host;
  return place->second;
}

const Route* CpuHosts::way_to(Rank npu) {
  const std::uint32_t server = cluster_.npu(npu).server;
  return server < size() ? &to_npu(server, npu) : nullptr;
}

const Route* CpuHosts::way_from(Rank npu) {
  const std::uint32_t server = cluster_.npu(npu).server;
  return server < size() ? &from_npu(npu, server) : nullptr;
}

const Route& CpuHosts::between(std::uint32_t from, std::uint32_t to) {
  const auto [place, is_new] = across_.try_emplace({from, to});
  if (!is_new) return place->second;
  const Rank source = gateway(from, 0);
  std::vector<LinkId> links = local_way(source, from, false);
  const Route& rest = from_npu(source, to);
  links.insert(links.end(), rest.links.begin(), rest.links.end());
  place->second = route_of(std::move(links), source, rest.destination);
  return place->second;
}

}  // namespace hcclsim::sim
