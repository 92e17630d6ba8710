#include "study/jobs/job/cluster/servers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace hcclsim::study {
namespace {

/// The labels of a server that a nodeSelector can ask for.
bool has_label(const JobServer& server, const std::string& key, const std::string& value) {
  if (key == "kubernetes.io/hostname") return value == server.name;
  if (key == "kubernetes.io/arch") return value == "arm64";
  return key == "kubernetes.io/os" && value == "linux";
}

bool is_selected(const JobServer& server, const PodTemplate& pod) {
  if (!pod.node_name.empty() && pod.node_name != server.name) return false;
  return std::all_of(pod.node_selector.begin(), pod.node_selector.end(),
                     [&](const auto& label) { return has_label(server, label.first, label.second); });
}

}  // namespace

Rank ServerPool::Place::free_npus() const { return static_cast<Rank>(std::count(taken.begin(), taken.end(), false)); }

std::optional<std::uint64_t> ServerPool::Place::free_of(const std::string& resource) const {
  if (resource == server.npu_resource || resource == "nvidia.com/gpu") return free_npus() * resource_unit;
  if (const auto found = free.find(resource); found != free.end()) return found->second;
  const bool device = resource.find('/') != std::string::npos;
  return device ? std::optional<std::uint64_t>(0) : std::nullopt;
}

std::vector<std::string> ServerPool::Place::reasons_against(const PodTemplate& pod) const {
  if (lost) return {"node(s) had untolerated taint {node.kubernetes.io/unreachable: }"};
  if (!is_selected(server, pod)) return {"node(s) didn't match Pod's node affinity/selector"};
  std::vector<std::string> reasons;
  if (std::find(slots.begin(), slots.end(), false) == slots.end()) reasons.emplace_back("Too many pods");
  for (const auto& [resource, amount] : pod.needed) {
    const std::optional<std::uint64_t> there = free_of(resource);
    if (there.has_value() && *there < amount) reasons.push_back("Insufficient " + resource);
  }
  // Two names that stand for the same NPUs.
  if (reasons.empty() && npus_of(pod.needed) > free_npus()) reasons.push_back("Insufficient " + server.npu_resource);
  return reasons;
}

ServerPool::ServerPool(std::vector<JobServer> servers, PodPacking packing) : packing_(packing) {
  for (JobServer& server : servers) {
    Place place;
    place.taken.resize(server.npus.size());
    place.slots.resize(most_pods_per_server);
    place.free["cpu"] = server.cpus * resource_unit;
    if (server.memory.has_value()) place.free["memory"] = *server.memory * resource_unit;
    place.server = std::move(server);
    places_.push_back(std::move(place));
  }
}

std::optional<std::uint32_t> ServerPool::find(const std::string& name) const {
  const auto found =
      std::find_if(places_.begin(), places_.end(), [&](const Place& place) { return place.server.name == name; });
  if (found == places_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - places_.begin());
}

std::optional<PodSeat> ServerPool::place(const PodTemplate& pod) {
  const auto room = [](const Place& place) { return std::pair(place.free_npus(), place.free.at("cpu")); };
  Place* chosen = nullptr;
  for (Place& place : places_) {
    if (!place.reasons_against(pod).empty()) continue;
    if (chosen == nullptr || (packing_ == PodPacking::spread && room(place) > room(*chosen))) chosen = &place;
  }
  if (chosen == nullptr) return std::nullopt;
  PodSeat seat{.server = static_cast<std::uint32_t>(chosen - places_.data())};
  const auto slot = std::find(chosen->slots.begin(), chosen->slots.end(), false);
  *slot = true;
  seat.slot = static_cast<std::uint32_t>(slot - chosen->slots.begin());
  for (auto& [resource, free] : chosen->free) {
    if (const auto needed = pod.needed.find(resource); needed != pod.needed.end()) free -= needed->second;
  }
  for (std::size_t npu = 0; seat.npus.size() < npus_of(pod.needed); ++npu) {
    if (chosen->taken[npu]) continue;
    chosen->taken[npu] = true;
    seat.npus.push_back(chosen->server.npus[npu]);
  }
  return seat;
}

void ServerPool::release(const PodSeat& seat, const PodTemplate& pod) {
  Place& place = places_[seat.server];
  place.slots[seat.slot] = false;
  for (auto& [resource, free] : place.free) {
    if (const auto needed = pod.needed.find(resource); needed != pod.needed.end()) free += needed->second;
  }
  for (std::size_t npu = 0; npu < place.taken.size(); ++npu) {
    const auto& of_seat = seat.npus;
    if (std::find(of_seat.begin(), of_seat.end(), place.server.npus[npu]) != of_seat.end()) place.taken[npu] = false;
  }
}

std::string ServerPool::why_not(const PodTemplate& pod) const {
  std::map<std::string, std::size_t> counts;
  for (const Place& place : places_) {
    for (const std::string& reason : place.reasons_against(pod)) ++counts[reason];
  }
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : counts) reasons.push_back(fmt::format("{} {}", count, reason));
  return fmt::format("0/{} nodes are available: {}", places_.size(), fmt::join(reasons, ", "));
}

std::optional<std::string> ServerPool::lacking(const Resources& resources) const {
  for (const auto& [resource, amount] : resources) {
    std::uint64_t free = 0;
    bool counted = false;
    for (const Place& place : places_) {
      const std::optional<std::uint64_t> there = place.free_of(resource);
      counted = counted || there.has_value();
      if (!place.lost) free += there.value_or(0);
    }
    if (counted && free < amount) return resource;
  }
  return std::nullopt;
}

}  // namespace hcclsim::study
