#include "cli/draw/communication_lanes.hpp"

#include <fmt/format.h>

namespace hcclsim::cli {

CommunicationLanes::CommunicationLanes(const ProfiledGroups& groups, const std::vector<const sim::Span*>& spans)
    : groups_(groups) {
  for (const sim::Span* span : spans) {
    if (span->kind == sim::SpanKind::collective) lanes_[{groups_.number_of(*span), span->stream}];
    if (is_task(*span)) lanes_[{groups_.number_of(*span), span->stream}].planes.insert(span->plane);
  }
  if (lanes_.empty()) lanes_[{0, 0}];
  std::uint32_t next = 0;
  for (auto& [key, lane] : lanes_) {
    lane.first = next;
    next += lane.planes.empty() ? 1 : *lane.planes.rbegin() + 2;
    ++streams_[key.first];
  }
}

std::uint32_t CommunicationLanes::thread(const sim::Span& span) const {
  const Lane& lane = lanes_.at({groups_.number_of(span), span.stream});
  return is_task(span) ? lane.first + 1 + span.plane : lane.first;
}

void CommunicationLanes::name(const std::function<void(std::uint32_t, const std::string&)>& name) const {
  for (const auto& [key, lane] : lanes_) {
    const auto& [group, stream] = key;
    name(lane.first, fmt::format("Group {} Communication{}", groups_.groups()[group].name,
                                 streams_.at(group) > 1 ? fmt::format(" (stream {})", stream) : ""));
    for (const std::uint32_t plane : lane.planes) name(lane.first + 1 + plane, fmt::format("Plane {}", plane));
  }
}

}  // namespace hcclsim::cli
