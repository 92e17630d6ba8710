#include "study/communication/schedules/compare.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "hccl/check/symmetry/symmetry.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "hccl/schedule/walk.hpp"
#include "study/platform/on_platform.hpp"

namespace hcclsim::study {
namespace {

using SchedulePair = std::array<std::shared_ptr<const hccl::Schedule>, 2>;

/// Simulates both, each alone.
std::pair<std::array<Seconds, 2>, PlatformFacts> times_of(const CompareSpec& spec, const SchedulePair& schedules) {
  return on_platform(spec.platform, obeyed_by_schedules, [&](LoadedPlatform& platform) {
    const std::vector<std::vector<hccl::CollectiveCall>> points{{{.name = spec.first, .schedule = schedules[0]}},
                                                                {{.name = spec.second, .schedule = schedules[1]}}};
    for (const auto& calls : points) platform.require_ranks(calls.front().name, calls.front().schedule->ranks);
    const hccl::SimulateOptions options{.exec_timeout = platform.config.exec_timeout};
    const auto results = simulate_each(platform.cluster, platform.soc, platform.costs, options, points);
    return std::pair(std::array{results[0].makespan, results[1].makespan}, platform.facts());
  });
}

}  // namespace

bool ScheduleComparison::equal_times() const {
  constexpr double tolerance = 1e-9;
  if (!times.has_value()) return true;
  const auto [first, second] = *times;
  return std::abs(second - first) <= tolerance * std::max(first, second);
}

ScheduleComparison compare_schedules(const CompareSpec& spec) {
  SchedulePair schedules;
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    const std::string& file = i == 0 ? spec.first : spec.second;
    schedules[i] = std::make_shared<const hccl::Schedule>(hccl::read_schedule(file).schedule);
  }
  const auto [first, second] = schedules;
  std::optional<Rank> deciding_ranks;
  const bool large = task_count(*first) + task_count(*second) > hccl::most_compared_tasks;
  if (large && rotate_alike(*first, *second)) deciding_ranks = 1;
  ScheduleComparison comparison{.difference =
                                    hccl::difference(*first, *second, hccl::most_compared_tasks, deciding_ranks)};
  if (spec.platform.file.empty()) {
    comparison.on.unmodelled = hccl::unmodelled(spec.platform.hccl_settings, {});
  } else {
    std::tie(comparison.times, comparison.on) = times_of(spec, schedules);
  }
  return comparison;
}

}  // namespace hcclsim::study
