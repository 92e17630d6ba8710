#include "study/communication/schedules/time.hpp"

#include <array>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "hccl/runtime/collective/bottleneck.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "sim/faults/fault_plan.hpp"
#include "study/platform/fault_notes.hpp"
#include "study/platform/on_platform.hpp"

namespace hcclsim::study {
namespace {

ScheduleTiming timing_of(const hccl::SimulatedCollectives& result, std::size_t call, const sim::Cluster& cluster,
                         Seconds others) {
  const hccl::CollectiveTime& time = result.calls[call];
  return {.time = time.per_iteration,
          .device = time.duration,
          .transfers = time.stats.transfers,
          .simulated = result.simulated,
          .folded = result.folded,
          .limit = bottleneck_of(time, cluster, others).name};
}

/// The links during one iteration of the calls, in a simulation of its own.
LinkReport links_during(const std::vector<hccl::CollectiveCall>& calls, hccl::SimulateOptions options,
                        LoadedPlatform& platform, std::size_t most_links) {
  options.iterations = 1;
  options.warmups = 0;
  options.record_flows = true;
  return run_in_child([&] {
    const auto result = hccl::simulate_collectives(platform.cluster, platform.soc, platform.costs, options, calls);
    return link_report(platform.cluster, result, calls, most_links, options.faults.get());
  });
}

/// Those of all schedules, each once.
std::vector<Rank> npus_of(const std::vector<hccl::CollectiveCall>& calls) {
  std::set<Rank> npus;
  for (const hccl::CollectiveCall& call : calls) {
    npus.insert(call.ranks.begin(), call.ranks.end());
    for (Rank rank = 0; call.ranks.empty() && rank < call.schedule->ranks; ++rank) npus.insert(rank);
  }
  return {npus.begin(), npus.end()};
}

ScheduleTimes simulate(const TimeSpec& spec, const std::vector<hccl::CollectiveCall>& calls, LoadedPlatform& platform) {
  for (const hccl::CollectiveCall& call : calls) {
    platform.require_ranks(call.name, call.schedule->ranks);
    platform.require_npus(call.name, call.ranks);
  }
  const bool together = spec.together && calls.size() > 1;
  const hccl::SimulateOptions options{
      .network = spec.network,
      .launch = spec.launch,
      .iterations = spec.iterations,
      .warmups = spec.warmups,
      .exec_timeout = platform.config.exec_timeout,
      .fold = true,
      .faults = sim::FaultPlan::of(platform.cluster, spec.faults, platform.placed.value_or(platform.cluster.size()),
                                   npus_of(calls))};
  note_faults(spec.faults, platform.notes);
  std::vector<std::vector<hccl::CollectiveCall>> points;
  for (const hccl::CollectiveCall& call : calls) points.push_back({call});
  if (together) points.push_back(calls);
  const auto results = simulate_each(platform.cluster, platform.soc, platform.costs, options, points);

  std::vector<Seconds> ends;
  std::vector<std::vector<std::string>> idle;
  for (const hccl::SimulatedCollectives& result : results) {
    ends.push_back(result.makespan);
    idle.push_back(result.idle_faults);
  }
  note_idle_faults(idle, platform.notes);
  note_faults_to_come(spec.faults, ends, platform.notes);

  ScheduleTimes times{.on = platform.facts(), .network = options.network, .schedules = {}};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const hccl::Schedule& schedule = *calls[i].schedule;
    TimedSchedule timed{.file = calls[i].name,
                        .npus = calls[i].ranks,
                        .collective = schedule.collective,
                        .algorithm = schedule.algorithm,
                        .ranks = schedule.ranks,
                        .payload = schedule.payload(),
                        .type = schedule.type,
                        .alone = timing_of(results[i], 0, platform.cluster, 0)};
    timed.speed = bandwidth_of(schedule, timed.alone.time);
    if (together) {
      const Seconds others = results.back().calls[i].duration - timed.alone.device;
      timed.together = timing_of(results.back(), i, platform.cluster, others);
    }
    if (spec.links > 0) timed.links = links_during(points[i], options, platform, spec.links);
    times.schedules.push_back(std::move(timed));
  }
  if (together) {
    times.makespan = results.back().makespan;
    if (spec.links > 0) times.links = links_during(calls, options, platform, spec.links);
  }
  return times;
}

}  // namespace

ScheduleTimes time_schedules(const TimeSpec& spec) {
  std::vector<hccl::CollectiveCall> calls;
  for (const auto& [file, npus, given_name] : spec.files) {
    auto schedule = std::make_shared<const hccl::Schedule>(hccl::read_schedule(file).schedule);
    const std::string& name = given_name.empty() ? file : given_name;
    if (!npus.empty() && npus.size() != schedule->ranks) {
      bad_input("schedule", "{}: a schedule for {} ranks on {} NPUs; give one NPU for each rank", name, schedule->ranks,
                npus.size());
    }
    calls.push_back({.name = name,
                     .schedule = std::move(schedule),
                     .ranks = npus,
                     .stream = static_cast<std::uint32_t>(calls.size())});
  }
  return on_platform(spec.platform, obeyed_by_schedules, spec.network,
                     [&](LoadedPlatform& platform) { return simulate(spec, calls, platform); });
}

}  // namespace hcclsim::study
