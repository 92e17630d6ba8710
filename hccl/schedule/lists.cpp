#include "hccl/schedule/lists.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace hcclsim::hccl {
namespace {

using Report = std::function<void(FieldPlace, std::string)>;

class ListCheck {
 public:
  ListCheck(const Schedule& schedule, const Stage& stage, std::uint32_t queues, const Report& report)
      : schedule_(schedule), stage_(stage), queues_(queues), report_(report) {}

  void run() {
    for (std::size_t i = 0; i < stage_.lists.size(); ++i) {
      const TaskList& list = stage_.lists[i];
      place_ = {{"list", static_cast<int>(i)}};
      require("rank", list.rank, schedule_.ranks);
      require("queue", list.queue, queues_);
      require("window", list.window, schedule_.windows());
      check_alone(list);
      for (std::size_t t = 0; t < list.tasks.size(); ++t) {
        place_.resize(1);
        place_.push_back({"task", static_cast<int>(t)});
        check(list.tasks[t]);
      }
    }
  }

 private:
  template <typename... Args>
  void find(const char* field, fmt::format_string<Args...> format, Args&&... args) const {
    FieldPlace place = place_;
    place.push_back({field});
    report_(std::move(place), fmt::format(format, std::forward<Args>(args)...));
  }

  void require(const char* field, std::int64_t given, std::uint32_t end) const {
    if (given >= end) find(field, "{} given; accepted: 0 to {}", given, std::int64_t{end} - 1);
  }

  /// A queue of a rank follows one list or strand of a stage.
  void check_alone(const TaskList& list) const {
    const TaskList* const first = stage_.lists.find(list.window, list.rank, list.queue);
    if (first != &list) {
      find("queue", "queue {} of rank {} already follows list[{}] of this stage", list.queue, list.rank,
           first - &stage_.lists[0]);
    }
    for (std::size_t s = 0; s < stage_.strands.size() && list.rank < schedule_.ranks; ++s) {
      const Strand& strand = stage_.strands[s];
      const bool follows = list.queue >= strand.first_queue && list.queue - strand.first_queue < strand.queues;
      if (!follows || strand.group >= schedule_.groups.size()) continue;
      if (schedule_.groups[strand.group].position(list.rank) == Group::not_a_member) continue;
      find("queue", "queue {} of rank {} already follows strand[{}] of this stage", list.queue, list.rank, s);
    }
  }

  void check(const Task& task) const {
    if (has_peer(task.kind)) require("peer", task.peer.value.base, schedule_.ranks);
    if (is_notify(task.kind)) {
      if (task.notify.base < std::int64_t{schedule_.notifies}) return;
      find("notify", "notify {}; the schedule has {} (notifies)", task.notify.base, schedule_.notifies);
      return;
    }
    check("source", task.source);
    if (task.destination != task.source) check("destination", task.destination);
  }

  void check(const char* field, const Range& range) const {
    for (const auto& [begin, end] : range.intervals) {
      if (begin > end) find(field, "bytes {}:{} end before they begin", begin, end);
      if (end > most_buffer_bytes) find(field, "byte {}; a buffer has at most {}", end, most_buffer_bytes);
    }
  }

  const Schedule& schedule_;
  const Stage& stage_;
  std::uint32_t queues_;
  const Report& report_;
  FieldPlace place_;
};

}  // namespace

void check_lists(const Schedule& schedule, std::size_t number, std::uint32_t queues, const Report& report) {
  ListCheck(schedule, schedule.stages[number], queues, report).run();
}

}  // namespace hcclsim::hccl
