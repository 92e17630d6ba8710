#include "study/jobs/job/cluster/job_state.hpp"

#include <algorithm>
#include <array>

namespace hcclsim::study {

std::string_view name_of(PodGroup::Phase phase) {
  constexpr std::array<std::string_view, 3> names{"Pending", "Inqueue", "Running"};
  return names.at(static_cast<std::size_t>(phase));
}

Pod* JobState::live_pod(const std::string& name) {
  const auto found =
      std::find_if(pods.rbegin(), pods.rend(), [&](const Pod& pod) { return pod.is_live() && pod.name == name; });
  return found == pods.rend() ? nullptr : &*found;
}

const JobService* JobState::live_service(std::uint32_t scheduler) const {
  const auto found = std::find_if(services.begin(), services.end(), [&](const JobService& service) {
    return !service.deleted.has_value() && service.index == scheduler;
  });
  return found == services.end() ? nullptr : &*found;
}

void JobState::add_event(bool warning, const std::string& object, const std::string& reason,
                         const std::string& message) {
  const auto [place, is_new] = event_at_.try_emplace({object, reason, message}, events.size());
  if (is_new) {
    events.push_back({now(), now(), 1, warning, object, reason, message});
    return;
  }
  JobEvent& event = events[place->second];
  event.last = now();
  ++event.count;
}

}  // namespace hcclsim::study
