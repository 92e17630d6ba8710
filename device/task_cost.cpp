#include "device/task_cost.hpp"

#include <fmt/format.h>

#include "sim/platform/catalog.hpp"

namespace hcclsim::device {

Seconds TaskCosts::transfer_setup(sim::Transport transport, Bytes bytes) const {
  if (transport == sim::Transport::rdma) return rdma_setup;
  return bytes < sdma_large ? sdma_setup : sdma_setup_large;
}

Seconds TaskCosts::local_reduce(Bytes bytes) const {
  return reduce_setup + static_cast<double>(bytes) / reduce_bandwidth;
}

Seconds HostIssue::base_for(std::string_view collective) const {
  const auto own = base_of.find(collective);
  return own == base_of.end() ? base : own->second;
}

TaskCosts read_task_costs(const PropertyLookup& property, std::vector<std::string>& notes) {
  TaskCosts costs;
  PropertyReader zone("outermost zone", property);
  constexpr double most_us = 1e6;
  zone.real("notify.record_us", 0, most_us, microsecond, costs.notify_record);
  zone.real("notify.record_local_us", 0, most_us, microsecond, costs.notify_record_local);
  zone.real("notify.wait_us", 0, most_us, microsecond, costs.notify_wait);
  zone.real("sdma.setup_us", 0, most_us, microsecond, costs.sdma_setup);
  zone.real("sdma.setup_large_us", 0, most_us, microsecond, costs.sdma_setup_large);
  zone.quantity("sdma.large_bytes", parse_bytes, costs.sdma_large);
  zone.real("rdma.setup_us", 0, most_us, microsecond, costs.rdma_setup);
  zone.real("reduce.setup_us", 0, most_us, microsecond, costs.reduce_setup);
  zone.quantity("reduce.bandwidth", parse_bandwidth, costs.reduce_bandwidth);
  zone.real("launch_us", 0, most_us, microsecond, costs.launch);
  zone.real("op.base_us", 0, most_us, microsecond, costs.issue.base);
  zone.real("op.task_us", 0, most_us, microsecond, costs.issue.task);
  if (!zone.missing().empty()) {
    notes.push_back(
        fmt::format("task costs not in the platform file, defaults used: {}", fmt::join(zone.missing(), ", ")));
  }
  PropertyReader optional("outermost zone", property);
  for (const std::string_view collective : sim::issued_collectives()) {
    Seconds base = 0;
    if (optional.real(fmt::format("op.base.{}_us", collective), 0, most_us, microsecond, base)) {
      costs.issue.base_of.emplace(collective, base);
    }
  }
  optional.real("aiv.launch_us", 0, most_us, microsecond, costs.vector_cores.launch);
  optional.real("aiv.access_us", 0, most_us, microsecond, costs.vector_cores.access);
  costs.issue.each_starts = property("op.issue").value_or("whole") == "task";
  return costs;
}

}  // namespace hcclsim::device
