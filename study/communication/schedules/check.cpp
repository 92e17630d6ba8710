#include "study/communication/schedules/check.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/check/check.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "hccl/verify/topology_cuts.hpp"
#include "study/platform/on_platform.hpp"

namespace hcclsim::study {
namespace {

constexpr std::string_view buffer_size = "HCCL_BUFFSIZE";

void require_memory(const std::string& file, const hccl::Schedule& schedule) {
  const Bytes needed = hccl::buffer_bytes(schedule);
  const Bytes there = static_cast<Bytes>(::sysconf(_SC_PHYS_PAGES)) * static_cast<Bytes>(::sysconf(_SC_PAGE_SIZE));
  if (needed <= there) return;
  bad_input("memory", "{}: the buffers of {} ranks take {} MiB, this computer has {} MiB; `schedule check` proves it",
            file, schedule.ranks, needed >> 20U, there >> 20U);
}

/// Level L6; the levels below have found nothing.
hccl::LevelReport values_level(const std::string& file, const hccl::Schedule& schedule) {
  require_memory(file, schedule);
  device::WorkerPool workers(0);
  const hccl::ValueCheck check = hccl::check_values(schedule, 1, workers);
  hccl::LevelReport level{"L6"};
  if (check.ok()) return level;
  const hccl::WrongElement& first = *check.first_wrong;
  level.ok = false;
  level.count = check.wrong;
  level.findings.push_back(
      {"value",
       fmt::format("{} of {} elements are wrong; first: element {} of rank {} should be {}, is {}", check.wrong,
                   check.elements, first.element, first.rank, first.expected, first.found),
       {first.rank}});
  return level;
}

/// What the chip has, and what its transfers can reduce; on a platform over its routes.
void take_limits(const device::Soc& soc, const hccl::Schedule& schedule, sim::Cluster* cluster,
                 hccl::CheckOptions& options) {
  // Beside the caller's own stream: HCCL's limit of slave streams for calls by themselves.
  constexpr std::uint32_t slave_streams = 40;
  options.notifies = soc.notifies;
  options.streams = schedule.ccl > 0 ? std::min(soc.streams, slave_streams + 1) : soc.streams;
  options.hbm = soc.hbm_bytes;
  options.reduction_alignment = soc.inline_reduce.alignment;
  const Bytes aligned = soc.inline_reduce.alignment;  // addresses are looked at task by task
  const bool can = device::inline_reduce(soc, schedule.type, schedule.op, aligned, sim::Transport::sdma);
  options.no_reduction = [cluster, can,
                          reason = fmt::format("transfers of {} reduce no {} of {} on the way", soc.name,
                                               name_of(schedule.op), name_of(schedule.type))](Rank from,
                                                                                              Rank to) -> std::string {
    if (cluster != nullptr && from != to && cluster->route(from, to).transport == sim::Transport::rdma) {
      return "RDMA reduces nothing on the way";
    }
    return can ? "" : reason;
  };
}

/// The communicator's buffers, one for the payload and one for scratch memory. Schedules that do not go through them
/// have their scratch memory from the graph.
void take_buffers(const hccl::Schedule& schedule, const hccl::HcclConfig& config, hccl::CheckOptions& options) {
  if (schedule.ccl == 0) return;
  options.ccl = config.buffer_bytes;
  options.scratch = config.buffer_bytes;
}

/// Level L0 of a schedule whose closed forms name what is not there: nothing else can be looked at.
hccl::CheckReport refused_form(const std::vector<hccl::Defect>& defects, std::size_t most) {
  hccl::LevelReport level{"L0", false, defects.size(), {}};
  for (const hccl::Defect& defect : defects) {
    if (level.findings.size() < most) level.findings.push_back({defect.kind, defect.message});
  }
  hccl::CheckReport report;
  report.verdict = hccl::verdict_against(level);
  report.levels.push_back(std::move(level));
  return report;
}

/// The levels up to L7, and L6 if it is asked for.
hccl::CheckReport check_with(const CheckSpec& spec, const hccl::Schedule& schedule, const hccl::CheckOptions& options) {
  hccl::CheckReport report = hccl::check(schedule, options);
  if (!spec.run || !report.ok) return report;
  add_level(report, values_level(spec.file, schedule));
  constexpr std::uint32_t proof = 5;
  if (report.ok && options.last_level < proof) {
    report.verdict = fmt::format("nothing wrong up to L{} and on the data of L6; the other levels were not checked",
                                 options.last_level);
  }
  return report;
}

/// Also L8 and L9.
ScheduleCheck check_on(LoadedPlatform& platform, const CheckSpec& spec,
                       const std::shared_ptr<const hccl::Schedule>& schedule, hccl::CheckOptions options) {
  platform.require_ranks(spec.file, schedule->ranks);
  ScheduleCheck result{.report = {}, .on = platform.facts()};
  take_limits(platform.soc, *schedule, &platform.cluster, options);
  take_buffers(*schedule, platform.config, options);
  const bool to_the_end = options.last_level >= 7;
  if (to_the_end) {
    constexpr Rank most_ranks = 1024;
    std::vector<Rank> npus(schedule->ranks);
    std::iota(npus.begin(), npus.end(), Rank{0});
    hccl::TopologyBounds bounds = hccl::topology_bounds(platform.cluster, npus, platform.costs, most_ranks);
    options.cuts = std::move(bounds.cuts);
    options.least_step = bounds.least_step;
    if (!bounds.all_routes) {
      result.on.notes.push_back(fmt::format(
          "of more than {} ranks L7 and L8 look at routes to a few other servers, and suppose that the routes to all "
          "others begin and end at the same links",
          most_ranks));
    }
  }
  result.report = check_with(spec, *schedule, options);
  if (!to_the_end || !result.report.ok) return result;
  const std::uint64_t tasks = task_count(*schedule);
  if (tasks <= hccl::most_timed_tasks) {
    result.timing = check_timing(schedule, *result.report.distances, platform.cluster, platform.soc, platform.costs);
    add_level(result.report, result.timing->l8);
    add_level(result.report, result.timing->conservation.l9);
  } else {
    result.on.notes.push_back(fmt::format("L8 and L9 were not checked: {} tasks, up to {} are simulated",
                                          with_thousands(tasks), with_thousands(hccl::most_timed_tasks)));
  }
  return result;
}

/// Without a chip HCCL_BUFFSIZE alone is read, whose values are the same for all.
ScheduleCheck check_alone(const CheckSpec& spec, const hccl::Schedule& schedule, hccl::CheckOptions options) {
  ScheduleCheck result;
  constexpr std::array<std::string_view, 1> obeyed{buffer_size};
  std::vector<hccl::HcclSetting> settings = spec.platform.hccl_settings;
  result.on.unmodelled = hccl::unmodelled(settings, obeyed);
  device::Generation generation = device::Generation::a1;
  if (!spec.soc.empty()) {
    std::vector<std::string> of_kernels;
    const device::Soc soc = device::find_soc(spec.soc, of_kernels);
    take_limits(soc, schedule, nullptr, options);
    generation = soc.generation;
  } else {
    std::erase_if(settings, [](const hccl::HcclSetting& setting) { return setting.variable != buffer_size; });
  }
  take_buffers(schedule, read_hccl_config(settings, generation, result.on.notes), options);
  result.report = check_with(spec, schedule, options);
  return result;
}

}  // namespace

ScheduleCheck check_schedule(const CheckSpec& spec) {
  std::vector<hccl::Defect> defects;
  const auto schedule = std::make_shared<const hccl::Schedule>(hccl::read_schedule(spec.file, &defects).schedule);
  const hccl::CheckOptions options{
      .queue_depth = spec.queue_depth, .recorded_order = spec.recorded_order, .last_level = spec.last_level};
  if (!defects.empty()) return {.report = refused_form(defects, options.most_findings)};
  if (spec.platform.file.empty()) return check_alone(spec, *schedule, options);
  constexpr std::array<std::string_view, 2> obeyed{buffer_size, "HCCL_INTER_HCCS_DISABLE"};
  return on_platform(spec.platform, obeyed,
                     [&](LoadedPlatform& platform) { return check_on(platform, spec, schedule, options); });
}

ScheduleExecution execute_schedule(const std::string& file, std::uint64_t seed, unsigned workers) {
  ScheduleExecution execution{hccl::read_schedule(file).schedule, {}};
  require_memory(file, execution.schedule);
  device::WorkerPool pool(workers);
  try {
    execution.check = hccl::check_values(execution.schedule, seed, pool);
  } catch (const Error& error) {
    throw Error(error.code(), error.kind(), fmt::format("{}: {}", file, error.what()));
  }
  return execution;
}

}  // namespace hcclsim::study
