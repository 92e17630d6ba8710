#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

/// The CPUs of a platform as ends of transfers: the hosts with property `cpu`, one per server, in the order of the
/// numbers in their names. An NPU reaches the CPU of its own server on the way that the file has, its PCIe link. It is
/// assumed that it reaches the CPU of another server through the NPU with its own device number there: over RoCE to
/// that NPU, then over that NPU's way to the CPU. Such a route is ours: of the networks, only `fluid` knows it, while
/// both know the way from a CPU to an NPU of its own server.
namespace hcclsim::sim {

class CpuHosts {
 public:
  /// Of a loaded cluster, whose NPUs have their ranks already, and which must outlive the object.
  explicit CpuHosts(Cluster& cluster);

  /// Number of CPUs; CPU c is that of server c.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(cpus_.size()); }
  [[nodiscard]] const std::string& name(std::uint32_t cpu) const { return cpus_[cpu].name; }

  /// Routes, kept once found; their ends are the NPUs through which they go. Throw Error(bad_input, "platform") if the
  /// file has no way between a CPU and an NPU of its server.
  [[nodiscard]] const Route& from_npu(Rank npu, std::uint32_t cpu);
  [[nodiscard]] const Route& to_npu(std::uint32_t cpu, Rank npu);
  /// From the CPU of its own server; null if that has none.
  [[nodiscard]] const Route* way_to(Rank npu);
  /// To the CPU of its own server; likewise.
  [[nodiscard]] const Route* way_from(Rank npu);
  /// Between the CPUs of two servers: through the first NPU of each.
  [[nodiscard]] const Route& between(std::uint32_t from, std::uint32_t to);

 private:
  /// The NPU of the CPU's server with the device number of another one, or the first of the server.
  [[nodiscard]] Rank gateway(std::uint32_t cpu, Rank of) const;
  /// The way between an NPU and the CPU of its server, up or down.
  [[nodiscard]] std::vector<LinkId> local_way(Rank npu, std::uint32_t cpu, bool up) const;
  [[nodiscard]] Route route_of(std::vector<LinkId> links, Rank source, Rank destination) const;

  Cluster& cluster_;
  std::vector<Cpu> cpus_;  // by server
  std::map<std::pair<Rank, std::uint32_t>, Route> up_;
  std::map<std::pair<std::uint32_t, Rank>, Route> down_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Route> across_;
};

}  // namespace hcclsim::sim
