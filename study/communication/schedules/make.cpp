#include "study/communication/schedules/make.hpp"

#include <string_view>
#include <utility>

#include "hccl/comm/communicator.hpp"
#include "hccl/runtime/simulate.hpp"
#include "hccl/schedule/walk.hpp"
#include "study/communication/measure/names.hpp"
#include "study/platform/on_platform.hpp"

namespace hcclsim::study {

TextOnPlatform make_schedule(const MakeSpec& spec) {
  // A schedule has no dates, and without the communicator's buffer no windows.
  std::vector<std::string_view> obeyed{"HCCL_ALGO", "HCCL_DETERMINISTIC", "HCCL_INTER_HCCS_DISABLE"};
  if (spec.request.launch == hccl::LaunchMode::op) obeyed.emplace_back("HCCL_BUFFSIZE");
  return on_platform(spec.platform, obeyed, [&](LoadedPlatform& platform) {
    hccl::CollectiveRequest request = spec.request;
    hccl::Operation& operation = request.operation;
    operation.ranks = platform.participating(spec.ranks);
    if (!spec.counts.empty()) operation.counts = block_counts(operation.collective, operation.ranks, spec.counts);
    request.config = platform.config;
    const hccl::Topology topology = hccl::topology_of(hccl::world_communicator(operation.ranks), platform.cluster);
    std::string text = contents_of(*hccl::make_collective(request, topology, platform.soc), spec.form);
    platform.note_algorithm(spec.platform.hccl_settings, request, topology);
    return TextOnPlatform{std::move(text), platform.facts()};
  });
}

TextOnPlatform draw_schedule(const PlatformSpec& platform, const std::string& file,
                             const std::shared_ptr<const hccl::Schedule>& schedule,
                             const std::function<std::string(const sim::Trace&)>& draw) {
  return on_platform(platform, obeyed_by_schedules, [&](LoadedPlatform& on) {
    on.require_ranks(file, schedule->ranks);
    const std::vector<hccl::CollectiveCall> calls{{.name = schedule->algorithm, .schedule = schedule}};
    const hccl::SimulateOptions options{.trace = true, .exec_timeout = on.config.exec_timeout};
    const auto result = simulate_collectives(on.cluster, on.soc, on.costs, options, calls);
    return TextOnPlatform{draw(result.trace), on.facts()};
  });
}

RankTotals totals_of(const hccl::Schedule& schedule, Rank rank) {
  RankTotals totals;
  for_each_task(schedule, rank, [&](std::uint32_t, const hccl::QueueWalk& walk) {
    const hccl::Task& task = *walk.task();
    ++totals.tasks;
    if (is_notify(task.kind)) return;
    const Bytes bytes = walk.bytes(schedule, rank);
    if (is_transfer(task.kind) && bytes > 0) ++totals.transfers;
    Bytes& sum = is_transfer(task.kind)                ? (reads(task.kind) ? totals.read : totals.written)
                 : task.kind == hccl::TaskKind::reduce ? totals.reduced
                                                       : totals.copied;
    sum += bytes;
  });
  return totals;
}

}  // namespace hcclsim::study
