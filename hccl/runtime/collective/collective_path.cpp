#include <algorithm>
#include <cmath>

#include "hccl/runtime/collective/collective_run.hpp"
#include "hccl/runtime/shared_npus.hpp"

// What a transfer adds to the path of its queue: its time, and what has limited it.
namespace hcclsim::hccl {

void CollectiveRun::add_to_path(Queue& queue) {
  const sim::Route& route = *queue.route;
  if (route.links.empty()) return;
  const sim::LinkId most = queue.rate > 0 ? queue.slowest : busiest_of(queue);
  const auto kind = static_cast<std::size_t>(machine_.cluster.links()[most].kind);
  PathTime& path = paths_.own(queue.path);
  Seconds& time = path.on_links.at(kind);
  sim::LinkId& named = path.links.at(kind);
  if (time == 0 || (most != named && limits_more(queue, most, named))) named = most;
  const Seconds taken = std::max(queue.date - queue.first_byte, 0.0);
  const double factor = reads(queue.walk.task()->kind) ? route.read_factor : route.write_factor;
  BytesPerSecond capacity = queue.capacity;
  for (std::size_t i = 0; machine_.faults != nullptr && i < route.links.size(); ++i) {
    const BytesPerSecond of_link = capacity_during(queue, route.links[i]);
    capacity = i == 0 ? of_link : std::min(capacity, of_link);
  }
  Seconds lost = 0;  // to what the HBMs carry besides
  if (machine_.shared != nullptr) lost = std::clamp(machine_.shared->lost(capacity), 0.0, taken);
  const Seconds idle = static_cast<double>(queue.bytes) * factor / capacity;
  time += taken - lost;
  path.on_hbm += lost;
  path.sharing += std::max(taken - lost - idle, 0.0);
}

BytesPerSecond CollectiveRun::capacity_during(const Queue& queue, sim::LinkId link) const {
  const BytesPerSecond capacity = machine_.cluster.capacity(link);
  if (machine_.faults == nullptr || queue.date <= queue.first_byte) return capacity;
  const Seconds time = queue.date - queue.first_byte;
  return capacity * machine_.faults->time_at_full_bandwidth(link, queue.first_byte, queue.date) / time;
}

Seconds CollectiveRun::load_during(const Queue& queue, sim::LinkId link) const {
  return loads_.time(link) * machine_.cluster.capacity(link) / capacity_during(queue, link);
}

sim::LinkId CollectiveRun::slowest_of(const sim::Route& route) const {
  return *std::ranges::min_element(route.links, {},
                                   [this](sim::LinkId link) { return machine_.cluster.capacity(link); });
}

sim::LinkId CollectiveRun::busiest_of(const Queue& queue) const {
  sim::LinkId busiest = queue.route->links.front();
  for (const sim::LinkId link : queue.route->links) {
    if (load_during(queue, link) > load_during(queue, busiest)) busiest = link;
  }
  return busiest;
}

/// Where ranks are folded, several transfers go over a shared link for each that is simulated.
bool CollectiveRun::is_private(sim::LinkId link) const {
  if (machine_.private_links == nullptr || !machine_.private_links->holds(link)) return false;
  const sim::LinkFold* const fold = machine_.cluster.link_fold();
  return fold == nullptr || fold->flows[link] == 1 || !machine_.cluster.links()[link].shared;
}

/// A link that is shared limits more than one that is not. Of private links it is the slowest one that does, whatever
/// the order in which their transfers are looked at; of others, and of those that a fault slows down, that with the
/// largest load. Of equal ones, up to rounding, the first one of the platform file.
bool CollectiveRun::limits_more(const Queue& queue, sim::LinkId link, sim::LinkId named) const {
  constexpr double rounding = 1e-9;
  const auto is_slowed = [&](sim::LinkId id) {
    return machine_.faults != nullptr && capacity_during(queue, id) < machine_.cluster.capacity(id) * (1 - rounding);
  };
  if (!is_slowed(link) && !is_slowed(named)) {
    if (is_private(link) != is_private(named)) return is_private(named);
    if (is_private(link)) {
      const BytesPerSecond speed = machine_.cluster.capacity(link);
      const BytesPerSecond speed_of_named = machine_.cluster.capacity(named);
      return speed < speed_of_named || (speed == speed_of_named && link < named);
    }
  }
  const Seconds load = load_during(queue, link);
  const Seconds load_of_named = load_during(queue, named);
  const bool as_much = load >= load_of_named * (1 - rounding);
  return load > load_of_named * (1 + rounding) || (as_much && link < named);
}

bool CollectiveRun::limits_as_much(sim::LinkId link, sim::LinkId other) const {
  constexpr double rounding = 1e-9;
  const auto fails = [this](sim::LinkId id) { return machine_.faults != nullptr && machine_.faults->touches(id); };
  if (fails(link) || fails(other) || is_private(link) != is_private(other)) return false;
  if (is_private(link)) return machine_.cluster.capacity(link) == machine_.cluster.capacity(other);
  return std::abs(loads_.time(link) - loads_.time(other)) <= rounding * loads_.time(other);
}

void CollectiveRun::name_first_links(PathTime& path) const {
  loads_.for_each([&](sim::LinkId link, double bytes) {
    if (bytes == 0) return;
    const auto kind = static_cast<std::size_t>(machine_.cluster.links()[link].kind);
    sim::LinkId& named = path.links.at(kind);
    if (path.on_links.at(kind) > 0 && link < named && limits_as_much(link, named)) named = link;
  });
}

}  // namespace hcclsim::hccl
