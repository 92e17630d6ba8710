#include "cli/print/job/kubectl_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace hcclsim::cli {

std::string_view kubectl_status(const study::Pod& pod) {
  using study::PodStage;
  switch (pod.stage()) {
    case PodStage::unscheduled:
      return "Pending";
    case PodStage::creating:
      return pod.why.empty() ? "ContainerCreating" : "ErrImageNeverPull";
    case PodStage::waiting:
    case PodStage::training:
    case PodStage::unreachable:
      return "Running";
    case PodStage::backing_off:
      return "CrashLoopBackOff";
    case PodStage::succeeded:
      return "Completed";
    case PodStage::failed:
      break;
  }
  return pod.exit_code == study::unknown_exit_code ? "NodeLost" : "Error";
}

std::string kubectl_age(Seconds age) {
  constexpr std::int64_t minute = 60;
  constexpr std::int64_t hour = 60 * minute;
  constexpr std::int64_t day = 24 * hour;
  const auto seconds = static_cast<std::int64_t>(age);
  const auto parts = [](std::int64_t large, char of_large, std::int64_t small, char of_small) {
    return small == 0 ? fmt::format("{}{}", large, of_large)
                      : fmt::format("{}{}{}{}", large, of_large, small, of_small);
  };
  if (seconds < 2 * minute) return fmt::format("{}s", seconds);
  if (seconds < 10 * minute) return parts(seconds / minute, 'm', seconds % minute, 's');
  if (seconds < 3 * hour) return fmt::format("{}m", seconds / minute);
  if (seconds < 8 * hour) return parts(seconds / hour, 'h', seconds % hour / minute, 'm');
  if (seconds < 2 * day) return fmt::format("{}h", seconds / hour);
  if (seconds < 8 * day) return parts(seconds / day, 'd', seconds % day / hour, 'h');
  return fmt::format("{}d", seconds / day);
}

std::string kubernetes_time(Seconds date) {
  using std::chrono::floor;
  const std::chrono::sys_seconds time{std::chrono::seconds(static_cast<std::int64_t>(date))};
  const auto day = floor<std::chrono::days>(time);
  const std::chrono::year_month_day calendar{day};
  const std::chrono::hh_mm_ss clock{time - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(calendar.year()),
                     static_cast<unsigned>(calendar.month()), static_cast<unsigned>(calendar.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string number_runs(const std::vector<Rank>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += text.empty() ? "" : ",";
    text += first == last ? std::to_string(numbers[first]) : fmt::format("{}-{}", numbers[first], numbers[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace hcclsim::cli
