#include "hccl/runtime/collective/link_limits.hpp"

#include <algorithm>
#include <cmath>

#include "hccl/runtime/shared_npus.hpp"

namespace hcclsim::hccl {

void LinkLimits::add(const LinkTransfer& transfer, Seconds end, bool reads, PathTime& path) const {
  const sim::Route& route = *transfer.route;
  const sim::LinkId most = transfer.rate > 0 ? transfer.slowest : busiest_of(transfer, end);
  const auto kind = static_cast<std::size_t>(machine_.cluster.links()[most].kind);
  Seconds& time = path.on_links.at(kind);
  sim::LinkId& named = path.links.at(kind);
  if (time == 0 || (most != named && limits_more(transfer, end, most, named))) named = most;
  const Seconds taken = std::max(end - transfer.first_byte, 0.0);
  const double factor = reads ? route.read_factor : route.write_factor;
  BytesPerSecond capacity = transfer.capacity;
  for (std::size_t i = 0; machine_.faults != nullptr && i < route.links.size(); ++i) {
    const BytesPerSecond of_link = capacity_during(transfer, end, route.links[i]);
    capacity = i == 0 ? of_link : std::min(capacity, of_link);
  }
  Seconds lost = 0;  // to what the HBMs carry besides
  if (machine_.shared != nullptr) lost = std::clamp(machine_.shared->lost(capacity), 0.0, taken);
  const Seconds idle = static_cast<double>(transfer.bytes) * factor / capacity;
  time += taken - lost;
  path.on_hbm += lost;
  path.sharing += std::max(taken - lost - idle, 0.0);
}

BytesPerSecond LinkLimits::capacity_during(const LinkTransfer& transfer, Seconds end, sim::LinkId link) const {
  const BytesPerSecond capacity = machine_.cluster.capacity(link);
  if (machine_.faults == nullptr || end <= transfer.first_byte) return capacity;
  const Seconds time = end - transfer.first_byte;
  return capacity * machine_.faults->time_at_full_bandwidth(link, transfer.first_byte, end) / time;
}

Seconds LinkLimits::load_during(const LinkTransfer& transfer, Seconds end, sim::LinkId link) const {
  return loads_.time(link) * machine_.cluster.capacity(link) / capacity_during(transfer, end, link);
}

sim::LinkId LinkLimits::slowest_of(const sim::Route& route) const {
  return *std::ranges::min_element(route.links, {},
                                   [this](sim::LinkId link) { return machine_.cluster.capacity(link); });
}

sim::LinkId LinkLimits::busiest_of(const LinkTransfer& transfer, Seconds end) const {
  sim::LinkId busiest = transfer.route->links.front();
  for (const sim::LinkId link : transfer.route->links) {
    if (load_during(transfer, end, link) > load_during(transfer, end, busiest)) busiest = link;
  }
  return busiest;
}

/// Where ranks are folded, several transfers go over a shared link for each that is simulated.
bool LinkLimits::is_private(sim::LinkId link) const {
  if (machine_.private_links == nullptr || !machine_.private_links->holds(link)) return false;
  const sim::LinkFold* const fold = machine_.cluster.link_fold();
  return fold == nullptr || fold->flows[link] == 1 || !machine_.cluster.links()[link].shared;
}

/// A link that is shared limits more than one that is not. Of private links it is the slowest one that does, whatever
/// the order in which their transfers are looked at; of others, and of those that a fault slows down, that with the
/// largest load. Of equal ones, up to rounding, the first one of the platform file.
bool LinkLimits::limits_more(const LinkTransfer& transfer, Seconds end, sim::LinkId link, sim::LinkId named) const {
  constexpr double rounding = 1e-9;
  const auto is_slowed = [&](sim::LinkId id) {
    return machine_.faults != nullptr &&
           capacity_during(transfer, end, id) < machine_.cluster.capacity(id) * (1 - rounding);
  };
  if (!is_slowed(link) && !is_slowed(named)) {
    if (is_private(link) != is_private(named)) return is_private(named);
    if (is_private(link)) {
      const BytesPerSecond speed = machine_.cluster.capacity(link);
      const BytesPerSecond speed_of_named = machine_.cluster.capacity(named);
      return speed < speed_of_named || (speed == speed_of_named && link < named);
    }
  }
  const Seconds load = load_during(transfer, end, link);
  const Seconds load_of_named = load_during(transfer, end, named);
  const bool as_much = load >= load_of_named * (1 - rounding);
  return load > load_of_named * (1 + rounding) || (as_much && link < named);
}

bool LinkLimits::limits_as_much(sim::LinkId link, sim::LinkId other) const {
  constexpr double rounding = 1e-9;
  const auto fails = [this](sim::LinkId id) { return machine_.faults != nullptr && machine_.faults->touches(id); };
  if (fails(link) || fails(other) || is_private(link) != is_private(other)) return false;
  if (is_private(link)) return machine_.cluster.capacity(link) == machine_.cluster.capacity(other);
  return std::abs(loads_.time(link) - loads_.time(other)) <= rounding * loads_.time(other);
}

void LinkLimits::name_first_links(PathTime& path) const {
  loads_.for_each([&](sim::LinkId link, double bytes) {
    if (bytes == 0) return;
    const auto kind = static_cast<std::size_t>(machine_.cluster.links()[link].kind);
    sim::LinkId& named = path.links.at(kind);
    if (path.on_links.at(kind) > 0 && link < named && limits_as_much(link, named)) named = link;
  });
}

}  // namespace hcclsim::hccl
