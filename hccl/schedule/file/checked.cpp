#include "hccl/schedule/file/checked.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "hccl/schedule/file/message.hpp"

namespace hcclsim::hccl {
namespace {

/// The kind of a finding about a field.
std::string kind_of(const FieldPlace& place) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kinds{{{"peer", "peer"},
                                                                                 {"peer_group", "peer"},
                                                                                 {"notify", "notify"},
                                                                                 {"source", "range"},
                                                                                 {"destination", "range"},
                                                                                 {"group", "group"},
                                                                                 {"span", "group"},
                                                                                 {"stride", "group"},
                                                                                 {"order", "group"},
                                                                                 {"first_queue", "queue"},
                                                                                 {"queues", "queue"},
                                                                                 {"queue", "queue"},
                                                                                 {"strand", "queue"}}};
  if (!place.empty()) {
    for (const auto& [field, kind] : kinds) {
      if (place.back().field == field) return std::string(kind);
    }
  }
  return place.size() == 1 && place.front().field == "alignment" ? "alignment" : "schedule";
}

}  // namespace

Schedule checked_schedule(const schedule_format::Schedule& message, const std::string& name,
                          const std::function<std::string(const FieldPlace&)>& position, std::vector<Defect>* defects) {
  try {
    std::vector<ScheduleError> known;
    Schedule schedule = schedule_of(message, defects == nullptr ? nullptr : &known);
    if (defects == nullptr) {
      validate(schedule);
    } else {
      for (const ScheduleError& defect : defects_of(schedule, std::move(known))) {
        defects->push_back({kind_of(defect.place()), shortened(name + ':' + position(defect.place()) + defect.what())});
      }
    }
    return schedule;
  } catch (const ScheduleError& problem) {
    bad_input("schedule", "{}:{}{}", name, position(problem.place()), problem.what());
  }
}

}  // namespace hcclsim::hccl
