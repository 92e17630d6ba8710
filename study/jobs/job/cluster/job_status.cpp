#include "study/jobs/job/cluster/job_status.hpp"

#include <algorithm>

namespace hcclsim::study {

std::string_view name_of(JobConditionType type) {
  constexpr std::array<std::string_view, 5> names{"Created", "Running", "Restarting", "Succeeded", "Failed"};
  return names.at(static_cast<std::size_t>(type));
}

bool JobStatus::has(JobConditionType type) const {
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const JobCondition& condition) { return condition.type == type && condition.status; });
}

std::string_view JobStatus::state() const { return conditions.empty() ? "" : name_of(conditions.back().type); }

bool JobStatus::set(Seconds now, JobConditionType type, const std::string& reason, const std::string& message) {
  using Type = JobConditionType;
  if (is_finished()) return false;
  JobCondition added{type, true, reason, message, now, now};
  for (const JobCondition& there : conditions) {
    if (there.type != type) continue;
    if (there.status && there.reason == reason) return false;
    if (there.status) added.last_transition = there.last_transition;
  }
  std::erase_if(conditions, [&](const JobCondition& there) {
    return there.type == type || (type == Type::restarting && there.type == Type::running) ||
           (type == Type::running && there.type == Type::restarting);
  });
  if (type == Type::succeeded || type == Type::failed) {
    for (JobCondition& there : conditions) {
      if (there.type != Type::running) continue;
      there.status = false;
      there.last_transition = now;
    }
  }
  conditions.push_back(added);
  history.emplace_back(now, type);
  return true;
}

}  // namespace hcclsim::study
